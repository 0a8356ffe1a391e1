//! What a deletion is about.

use crate::types::Timestamp;

/// What Delete Blob removes. Source: `x-ms-delete-snapshots`, `snapshot` of Delete Blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeleteScope {
    /// The blob; refused while it has snapshots.
    #[default]
    Blob,
    /// The blob and all its snapshots.
    BlobAndSnapshots,
    /// All its snapshots.
    Snapshots,
    /// The snapshot taken then.
    Snapshot(Timestamp),
}
