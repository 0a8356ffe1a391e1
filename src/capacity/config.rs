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

/// Where the catalog of extents is kept. The catalog is a cache. If it is lost, the next start
/// reads the first page of each extent, and the next audit frees again the ranges that the catalog
/// had noted as freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogPlace {
    /// In memory, lost at every stop.
    Memory,
    /// A simulated catalog for each disk. It survives simulated restarts and loses entries as a
    /// real one may.
    Simulated(Vec<SimulatedCatalog>),
    /// In the folder `catalog` of each of these data directories, listed in the order of the disks.
    Folders(Vec<PathBuf>),
}

/// What a start does with an extent that it finds open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenExtents {
    /// It seals the extent where its frames end: this node has the only copy, and the writer of the
    /// extent ended with the process before.
    Seal,
    /// It closes the copy: the copy takes no appends and can be read. Other nodes have copies too,
    /// so the node does not decide alone where the extent ends.
    Close,
}

/// Settings of a capacity node. Every size is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityConfig {
    /// Size of the journal file of a new disk; an existing journal keeps its size. Default 64 MiB,
    /// at least 256 KiB.
    pub journal_bytes: u64,
    /// Durable appends whose frames take fewer bytes than this go through the journal. Default 64
    /// KiB, at most 1/8 of the ring.
    pub journal_append_max: u64,
    /// Bytes of records that may wait for the journal; further appends wait for room. Default 16
    /// MiB.
    pub journal_queue_bytes: u64,
    /// Journaled bytes of one extent that may be held in memory before they are written to its
    /// file. Default 256 KiB.
    pub tail_bytes: u64,
    /// Space reserved at a time for an open data extent. Default 8 MiB.
    pub allocate_data_bytes: u64,
    /// The most that is reserved at a time for a log or a run. The first reservation is 64 KiB, and
    /// each later one doubles the reserved space up to this step, because most of thousands of
    /// partitions hold little data. Default 1 MiB.
    pub allocate_index_bytes: u64,
    /// Space that allocations for data extents must leave available. `None` means 2 % of the disk,
    /// at least 64 MiB, at most 10 % of the disk. Logs and runs must leave 1/8 of it.
    pub reserve_bytes: Option<u64>,
    /// Files of extents that stay open on each disk. A file that is being written to is not closed
    /// even if there are more. Default 1024.
    pub open_files_max: usize,
    /// Pace of the background scrub. Default 4 MiB/s; 0 turns it off.
    pub scrub_bytes_per_second: u64,
    /// Pause between two rounds of the scrub. Default one day.
    pub scrub_pause: Duration,
    /// Pause between two searches for sparse extents to compact. Default 5 s.
    pub compact_pause: Duration,
    /// The least space that the compaction of an extent must free. Default 256 KiB.
    pub compact_waste_min: u64,
    /// Pace of compaction. Default 64 MiB/s; 0 turns it off.
    pub compact_bytes_per_second: u64,
    /// The id of a new store; an existing store keeps its id. Default: a random id.
    pub store: Option<u128>,
    /// Whether disks that an older release made keep their format. Set when a store is only
    /// inspected, so that the older release can serve it again. Default: no.
    pub keeps_format: bool,
    /// What a start does with extents that it finds open. Default: it seals them.
    pub open_extents: OpenExtents,
    /// Where the catalog is kept.
    pub catalog: CatalogPlace,
    /// Numbers of the store's disks that are expected to be absent: removed disks, and those named
    /// by `--without-disk`. Default: none.
    pub absent: BTreeSet<usize>,
    /// The number of each given disk in the store's list of disks, in the order of the disks;
    /// `None` for a disk that is not in the list. If the `format` file of a listed disk cannot be
    /// read, the disk is out of service. Default: none.
    pub numbers: Vec<Option<usize>>,
    /// Whether an absent disk still holds extents. If so, an extent that is not found may lie on it
    /// and does not count as removed. Default: no.
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
            open_extents: OpenExtents::Seal,
            catalog: CatalogPlace::Memory,
            absent: BTreeSet::new(),
            numbers: Vec::new(),
            without: false,
        }
    }
}

impl CapacityConfig {
    /// Small sizes for tests and simulation, so that a few appends cross every threshold.
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

    /// Whether a sealed extent without live bytes is removed at once. A node of a cluster keeps it
    /// until the record of its group says that it is gone.
    pub(super) fn removes_dead(&self) -> bool {
        self.open_extents == OpenExtents::Seal
    }

    /// Bytes to reserve next for an extent that has `allocated` bytes.
    pub(super) fn allocate_step(&self, kind: ExtentKind, allocated: u64) -> u64 {
        match kind {
            ExtentKind::Data => self.allocate_data_bytes,
            ExtentKind::Log | ExtentKind::Run => {
                allocated.max(ALLOCATE_INDEX_FIRST).min(self.allocate_index_bytes)
            }
        }
    }

    /// Bytes that must stay available after an allocation for this kind on a disk of `total` bytes.
    pub(super) fn floor(&self, kind: ExtentKind, total: u64) -> u64 {
        let reserve =
            self.reserve_bytes.unwrap_or_else(|| (total / 50).max(64 * MIB).min(total / 10));
        match kind {
            ExtentKind::Data => reserve,
            ExtentKind::Log | ExtentKind::Run => reserve / 8,
        }
    }
}
