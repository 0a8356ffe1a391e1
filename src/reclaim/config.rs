//! Settings of reclaim.

use std::time::Duration;

/// How eagerly space is given back. Changing a value never endangers data except where its line
/// says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimConfig {
    /// Pause between two passes while there is work. Default 1 s. One that walked over garbage for
    /// long is followed by a pause nine times as long, so that looking for work takes a tenth of
    /// the time at most; but no longer than eight times `interval_max`.
    pub interval: Duration,
    /// The pause grows to this, doubling, while there is none or after failures. Default 8 s.
    pub interval_max: Duration,
    /// Tag index work younger than this is left to the front end that is about to do it. Default 2
    /// s.
    pub grace: Duration,
    /// Garbage rows (of up to 1,000 locations) freed at once. Default 64.
    pub garbage_rows: usize,
    /// Garbage rows freed in one pass of one partition. Default 6,400.
    pub garbage_rows_per_pass: usize,
    /// An open extent with so many bytes of garbage, and an eighth of its length, is sealed so that
    /// it gives them back. Default 8 MiB.
    pub open_waste_min: u64,
    /// Staged blocks live this long after the last Put Block to their blob. Default 7 days, as the
    /// service has it.
    pub staged_life: Duration,
    /// How often to look for expired ones. Default 1 hour.
    pub expire_every: Duration,
    /// Blobs expired or purged by one write. Default 64.
    pub blobs_per_write: usize,
    /// Such writes in one pass. Default 64.
    pub writes_per_pass: usize,
    /// How often to look for deleted containers; while one is being purged, every pass does.
    /// Default 10 s.
    pub purge_every: Duration,
    /// A deleted container is purged once more when this has passed and all requests that may have
    /// found it have ended. Default 10 s.
    pub purge_again_after: Duration,
    /// From start to the first audit. From one that failed to the next it is twice as long, doubled
    /// with each further failure, up to `audit_every`. Default 1 minute.
    pub audit_delay: Duration,
    /// From one audit to the next. Default 1 day.
    pub audit_every: Duration,
    /// Blobs read at once by an audit. Default 256.
    pub audit_blobs: usize,
    /// Locations told at once to an audit, 32 bytes each. A blob that names more is read once more
    /// for each further so many: all its rows are, so this is not to be small. Default 262,144.
    pub audit_locations: usize,
    /// Pause between such reads: an audit is never urgent. Default 2 ms.
    pub audit_pause: Duration,
    /// Pause while an audit waits for reads and copies that began before it had walked all rows.
    /// Default 100 ms.
    pub audit_wait: Duration,
    /// How long an audit waits for their look-ups; then it gives up and frees nothing more. Default
    /// 1 hour.
    pub audit_wait_max: Duration,
    /// How long an audit, when it has freed all else of a walk, waits for reads of single extents.
    /// Those still read are left to the next round, which begins within `audit_wait_max` after the
    /// end of this one. Default 1 minute.
    pub audit_read_max: Duration,
    /// A read that runs for longer is told in the log, and again each time as much has passed.
    /// Default 5 minutes.
    pub read_warn_after: Duration,
    /// How often the oldest read is looked at. Default 5 s.
    pub read_watch: Duration,
    /// An audit runs soon once so many bytes were dropped that only it can free. Default 64 MiB.
    pub audit_dropped_min: u64,
    /// Pause before such an audit, and least time between audits. A whole round also begins so soon
    /// after the end of one that had been cut off. Default 1 minute.
    pub audit_soon: Duration,
    /// Ranges of live bytes held in memory, 16 bytes each, and extents taken in one walk: more
    /// makes further walks. Default 4 million.
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
