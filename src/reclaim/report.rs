//! The result of an audit.

/// The result of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// It continued a round that had begun before.
    pub resumed: bool,
    /// Data extents compared with the rows. One that was audited in parts counts once for each
    /// part.
    pub extents: u64,
    /// Walks over all rows.
    pub walks: u64,
    /// Data extents skipped because a copy named bytes of them meanwhile.
    pub copied: u64,
    /// Data extents left to the next round because they were still being read.
    pub read: u64,
    /// Logs and runs that exist and are in no partition's record.
    pub orphaned: u64,
    /// Logs and runs that partitions served here use and that do not exist.
    pub missing: u64,
    /// Extents left to the next round because their disk takes no writes or is missing.
    pub poisoned: u64,
    /// Extents left to the next round because freeing them failed for another reason.
    pub failed: u64,
}
