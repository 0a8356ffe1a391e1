//! The scope of a deletion.

use serde::Deserialize;
use serde::Serialize;

use crate::types::Revision;
use crate::types::Timestamp;

/// Whether Delete Blob removes the blob, its snapshots, or both. Source: `x-ms-delete-snapshots`,
/// `snapshot` of Delete Blob.
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
    /// The blob, as an S3 object: where versions are kept a blob that does not exist gets a delete
    /// marker, and snapshots do not prevent that the blob becomes a version.
    Object,
    /// A version; soft delete keeps it for some days. If it is the current blob, the previous
    /// version becomes current.
    Version(Revision),
    /// A version that is not current; soft delete keeps it for some days.
    FormerVersion(Timestamp),
    /// A snapshot or a version that was softly deleted: it can no longer be restored.
    Permanently(Revision),
}

impl DeleteScope {
    /// Whether it is one version, which is removed permanently.
    #[must_use]
    pub const fn is_version(self) -> bool {
        matches!(self, Self::Version(_) | Self::FormerVersion(_))
    }
}
