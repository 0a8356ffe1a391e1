//! Versions of a blob.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// Whether a container keeps blobs that are overwritten or deleted. The order of the variants is on
/// disk. A container without this setting never had versioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versioning {
    /// They are kept as versions.
    Enabled,
    /// Earlier versions stay. Writes replace the null version.
    Suspended,
}

/// Which version of a blob a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionId {
    /// When it was committed. Both protocols form the version id from it.
    pub time: Timestamp,
    /// Whether it is S3's `null` version, written while versioning was suspended.
    pub is_null: bool,
}

impl VersionId {
    /// The null version that was committed at this time.
    #[must_use]
    pub const fn null(time: Timestamp) -> Self {
        Self { time, is_null: true }
    }
}

/// Which of its states a blob is meant in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Revision {
    /// The current blob.
    #[default]
    Current,
    /// The snapshot that was taken at this time.
    Snapshot(Timestamp),
    /// The version that was committed at this time; it may be the current blob.
    Version(Timestamp),
    /// S3's `null` version; it may be the current blob.
    Null,
}

impl Revision {
    /// The time of the snapshot, if a snapshot is meant.
    #[must_use]
    pub const fn snapshot(self) -> Option<Timestamp> {
        match self {
            Self::Snapshot(taken) => Some(taken),
            Self::Current | Self::Version(_) | Self::Null => None,
        }
    }

    /// Whether the current blob is meant, whatever it is.
    #[must_use]
    pub const fn is_current(self) -> bool {
        matches!(self, Self::Current)
    }
}

impl From<Option<Timestamp>> for Revision {
    /// The current blob, or the snapshot of that time.
    fn from(snapshot: Option<Timestamp>) -> Self {
        snapshot.map_or(Self::Current, Self::Snapshot)
    }
}
