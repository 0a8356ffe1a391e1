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
