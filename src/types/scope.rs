//! The scope of a deletion.

use serde::Deserialize;
use serde::Serialize;

use crate::types::Timestamp;

/// What Delete Blob removes. Source: `x-ms-delete-snapshots`, `snapshot` of Delete Blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeleteScope {
    /// The blob. Refused while it has snapshots.
    #[default]
    Blob,
    /// The blob and all its snapshots.
    BlobAndSnapshots,
    /// All its snapshots.
    Snapshots,
    /// The snapshot of this time.
    Snapshot(Timestamp),
}
