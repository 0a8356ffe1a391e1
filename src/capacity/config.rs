//! Settings of a capacity node.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::capacity::ExtentKind;
use crate::capacity::SimulatedCatalog;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The first space reserved for a log or a run.
const ALLOCATE_INDEX_FIRST: u64 = 64 * KIB;

/// Where the catalog of extents is kept. It is a cache: losing it costs a slower start and the
/// frees of unsealed time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogPlace {
    /// In memory: forgotten at every stop.
    Memory,
    /// For each of the disks one that outlives restarts of a simulation, as forgetful as a real
    /// one.
    Simulated(Vec<SimulatedCatalog>),
    /// In the folder `catalog` of each of these data directories, in the order of the disks.
    Folders(Vec<PathBuf>),
}

/// How a node treats its disks. Every size is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityConfig {
    /// Size of a new journal ring; an existing one keeps its size. Default 64 MiB, at least 256
    /// KiB.
    pub journal_bytes: u64,
    /// Durable appends with less payload than this go through the journal. Default 64 KiB; also at
    /// most 1/8 of the ring.
    pub journal_append_max: u64,
    /// Payload and frames waiting for the journal before appends wait in turn. Default 16 MiB.
    pub journal_queue_bytes: u64,
    /// Journaled bytes of one extent held in memory before they are written to its file. Default
    /// 256 KiB.
    pub tail_bytes: u64,
    /// Space reserved at a time for an open data extent. Default 8 MiB.
    pub allocate_data_bytes: u64,
    /// The same for a log or a run, at most: the first is 64 KiB, each later one as much as is
    /// there, since of thousands of partitions most have little. Default 1 MiB.
    pub allocate_index_bytes: u64,
    /// Data extents are refused when less than this is available: `None` is 2 % of the disk, at
    /// least 64 MiB, at most 10 % of the disk.
    pub reserve_bytes: Option<u64>,
    /// Open files of extents kept per disk, beside those that are being written to. Default 1024.
    pub open_files_max: usize,
    /// Pace of the background scrub. Default 4 MiB/s; 0 turns it off.
    pub scrub_bytes_per_second: u64,
    /// Pause between two rounds of the scrub. Default one day.
    pub scrub_pause: Duration,
    /// How often sparse extents are looked for, to compact them. Default 5 s.
    pub compact_pause: Duration,
    /// Space compaction must win in an extent at least, bytes. Default 256 KiB.
    pub compact_waste_min: u64,
    /// Pace of compaction. Default 64 MiB/s; 0 turns it off.
    pub compact_bytes_per_second: u64,
    /// The id of a new store; an existing one keeps its id. Default a random one.
    pub store: Option<u128>,
    /// Whether disks that a release before made keep their format: of a store that is only looked
    /// at, which that release may serve again. Default no.
    pub keeps_format: bool,
    /// Where the catalog is kept.
    pub catalog: CatalogPlace,
    /// Numbers of the store's disks that are not given and not missed: removed ones, and those the
    /// operator does without. Default none.
    pub absent: BTreeSet<usize>,
    /// The numbers that the store's list gives the disks, in their order; `None` for those that are
    /// not in it. A disk that has one here and whose `format` file cannot be read is out of
    /// service. Default none.
    pub numbers: Vec<Option<usize>>,
    /// Whether one of the absent still holds extents. An extent that is not found may lie there
    /// then, and does not count as removed. Default no.
    pub without: bool,
}

impl Default for CapacityConfig {
    fn default() -> Self {
        Self {
            journal_bytes: 64 * MIB,
            journal_append_max: 64 * KIB,
            journal_queue_bytes: 16 * MIB,
            tail_bytes: 256 * KIB,
            allocate_data_bytes: 8 * MIB,
            allocate_index_bytes: MIB,
            reserve_bytes: None,
            open_files_max: 1024,
            scrub_bytes_per_second: 4 * MIB,
            scrub_pause: Duration::from_secs(86_400),
            compact_pause: Duration::from_secs(5),
            compact_waste_min: 256 * KIB,
            compact_bytes_per_second: 64 * MIB,
            store: None,
            keeps_format: false,
            catalog: CatalogPlace::Memory,
            absent: BTreeSet::new(),
            numbers: Vec::new(),
            without: false,
        }
    }
}

impl CapacityConfig {
    /// Small sizes for tests and simulation: every threshold is crossed after a few appends.
    #[must_use]
    pub fn small() -> Self {
        Self {
            journal_bytes: 256 * KIB,
            journal_append_max: 16 * KIB,
            journal_queue_bytes: 128 * KIB,
            tail_bytes: 32 * KIB,
            allocate_data_bytes: 256 * KIB,
            allocate_index_bytes: 64 * KIB,
            reserve_bytes: Some(64 * KIB),
            open_files_max: 4,
            scrub_bytes_per_second: 0,
            compact_pause: Duration::from_millis(50),
            compact_waste_min: 8 * KIB,
            ..Self::default()
        }
    }

    /// What to reserve next for an extent that has `allocated`.
    pub(super) fn allocate_step(&self, kind: ExtentKind, allocated: u64) -> u64 {
        match kind {
            ExtentKind::Data => self.allocate_data_bytes,
            ExtentKind::Log | ExtentKind::Run => {
                allocated.max(ALLOCATE_INDEX_FIRST).min(self.allocate_index_bytes)
            }
        }
    }

    /// What must stay available after an allocation of this kind on a disk of `total` bytes.
    pub(super) fn floor(&self, kind: ExtentKind, total: u64) -> u64 {
        let reserve =
            self.reserve_bytes.unwrap_or_else(|| (total / 50).max(64 * MIB).min(total / 10));
        match kind {
            ExtentKind::Data => reserve,
            ExtentKind::Log | ExtentKind::Run => reserve / 8,
        }
    }
}
