//! Settings of reclaim.

use std::time::Duration;

/// How fast space is freed. No value endangers data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimConfig {
    /// Pause between two passes while there is work. Default 1 s. The pause is at
    /// least nine times as long as listing garbage took, so that listing takes at most a tenth of
    /// the time, but at most eight times `interval_max`.
    pub interval: Duration,
    /// The pause doubles up to this while there is no work and after failures. Default 8 s.
    pub interval_max: Duration,
    /// Updates of the tag index younger than this are left to the front end that is about to apply
    /// them. Default 2 s.
    pub grace: Duration,
    /// Garbage rows (of up to 1,000 locations) that are freed together. Default 64.
    pub garbage_rows: usize,
    /// Garbage rows freed in one pass of one partition. Default 6,400.
    pub garbage_rows_per_pass: usize,
    /// An open extent is sealed when its garbage is at least this many bytes and an eighth of its
    /// length. Default 8 MiB.
    pub open_waste_min: u64,
    /// Staged blocks live this long after the last Put Block to their blob, and completed uploads
    /// are remembered as long. Default 7 days, as in Azure.
    pub staged_life: Duration,
    /// How often expired staged blocks are searched. Default 1 hour.
    pub expire_every: Duration,
    /// How often soft-deleted rows that can no longer be restored are searched. Default 1 minute.
    pub end_deletions_every: Duration,
    /// Blobs expired or purged by one write. Default 64.
    pub blobs_per_write: usize,
    /// Such writes in one pass. Default 64.
    pub writes_per_pass: usize,
    /// How often deleted containers are searched. While one is being purged, every pass does so.
    /// Default 10 s.
    pub purge_every: Duration,
    /// A deleted container is purged a second time when this time has passed and all requests that
    /// may have found it have ended. Default 10 s.
    pub purge_again_after: Duration,
    /// From the start to the first audit. After a failed audit the pause is twice as long, and
    /// doubles with each further failure, up to `audit_every`. Default 1 minute.
    pub audit_delay: Duration,
    /// From one audit to the next. Default 1 day.
    pub audit_every: Duration,
    /// Blobs per read of an audit. Default 256.
    pub audit_blobs: usize,
    /// Locations in one reply to an audit, 32 bytes each. A blob that names more is read again for
    /// each further reply, with all its rows, so this must not be small. Default 262,144.
    pub audit_locations: usize,
    /// Pause between two such reads. Default 2 ms.
    pub audit_pause: Duration,
    /// Interval at which an audit polls reads and copies that it waits for. Default 100 ms.
    pub audit_wait: Duration,
    /// How long an audit waits for the look-ups of reads and copies. Then it fails and frees
    /// nothing more. Default 1 hour.
    pub audit_wait_max: Duration,
    /// How long an audit waits at the end of a walk for reads of single extents. Extents that are
    /// still read then are left to the next round, which begins within `audit_wait_max` after the
    /// end of this one. Default 1 minute.
    pub audit_read_max: Duration,
    /// A read that runs for longer is logged, and logged again each time this has passed. Default 5
    /// minutes.
    pub read_warn_after: Duration,
    /// How often the age of the oldest read is checked. Default 5 s.
    pub read_watch: Duration,
    /// An audit runs soon when at least this many shared bytes were dropped: only an audit frees
    /// them. Default 64 MiB.
    pub audit_dropped_min: u64,
    /// Pause before such an audit, and the shortest time between two audits. After the end of a
    /// round that was interrupted, a whole round begins after this pause too. Default 1 minute.
    pub audit_soon: Duration,
    /// Ranges of live bytes held in memory, 16 bytes each, and extents audited in one walk. More
    /// need further walks. Default 4 million.
    pub audit_ranges_max: usize,
}

impl Default for ReclaimConfig {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3_600);
        const DAY: Duration = Duration::from_secs(86_400);
        Self {
            interval: Duration::from_secs(1),
            interval_max: Duration::from_secs(8),
            grace: Duration::from_secs(2),
            garbage_rows: 64,
            garbage_rows_per_pass: 6_400,
            open_waste_min: 8 << 20,
            staged_life: DAY * 7,
            expire_every: HOUR,
            end_deletions_every: Duration::from_secs(60),
            blobs_per_write: 64,
            writes_per_pass: 64,
            purge_every: Duration::from_secs(10),
            purge_again_after: Duration::from_secs(10),
            audit_delay: Duration::from_secs(60),
            audit_every: DAY,
            audit_blobs: 256,
            audit_locations: 256 * 1024,
            audit_pause: Duration::from_millis(2),
            audit_wait: Duration::from_millis(100),
            audit_wait_max: HOUR,
            audit_read_max: Duration::from_secs(60),
            read_warn_after: Duration::from_secs(300),
            read_watch: Duration::from_secs(5),
            audit_dropped_min: 64 << 20,
            audit_soon: Duration::from_secs(60),
            audit_ranges_max: 4_000_000,
        }
    }
}
