//! What an audit says it did.

/// What an audit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// It went on with a round that was begun before.
    pub resumed: bool,
    /// Data extents held against the rows; one that was taken in parts counts for each of them.
    pub extents: u64,
    /// Walks over all rows that took.
    pub walks: u64,
    /// Data extents left alone because a copy meanwhile named bytes of them.
    pub copied: u64,
    /// Data extents left to the next round because a read of them went on.
    pub read: u64,
    /// Logs and runs that are there and in no partition's record.
    pub orphaned: u64,
    /// Logs and runs that partitions served here use and that are not there.
    pub missing: u64,
    /// Extents left to the next round because their disk takes no writes or is not there.
    pub poisoned: u64,
    /// Extents left to the next round because freeing them failed otherwise.
    pub failed: u64,
}
