//! The result of a change of a container or blob.

use serde::Deserialize;
use serde::Serialize;

use crate::types::Etag;
use crate::types::Timestamp;
use crate::types::VersionId;

/// Tag and time after a change of a container or blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The new tag.
    pub etag: Etag,
    /// The new time.
    pub last_modified: Timestamp,
    /// The version that the change made, or that was changed; `None` where versions are not kept.
    pub version: Option<VersionId>,
}

impl Written {
    /// The answer to a change at `now`.
    #[must_use]
    pub const fn at(now: Timestamp, version: Option<VersionId>) -> Self {
        Self { etag: Etag::from_commit(now), last_modified: now, version }
    }
}

/// The result of a deletion of a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The delete marker that was put, or the version that was removed; `None` where versions are
    /// not kept.
    pub version: Option<VersionId>,
    /// Whether that version is a delete marker.
    pub is_marker: bool,
    /// Whether the deleted blob is kept, as a version or for some time.
    pub is_kept: bool,
}
