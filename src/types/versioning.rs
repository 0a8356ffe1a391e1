//! Versions of a blob.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// Whether a container keeps what is overwritten or deleted; on disk by position. A container that
/// says nothing never did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versioning {
    /// As versions.
    Enabled,
    /// Versions of before stay; writes replace the null version.
    Suspended,
}

/// Which version of a blob a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionId {
    /// When it was committed; both protocols spell the version id from it.
    pub time: Timestamp,
    /// S3's `null` version: written while versioning was suspended.
    pub is_null: bool,
}
