//! What keeps a blob from being removed or changed, and what became of one that was removed.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// Until when a version must neither be removed nor changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Whether the time may be shortened.
    pub mode: RetentionMode,
    /// Until when.
    pub until: Timestamp,
}

/// Whether a retention may be taken back; on disk by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    /// By those with a permission of their own: S3's `GOVERNANCE`, Blob's `Unlocked`.
    Unlocked,
    /// By nobody: S3's `COMPLIANCE`, Blob's `Locked`.
    Locked,
}

/// The object lock of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLock {
    /// What new blobs get that name no retention.
    pub default: Option<DefaultRetention>,
}

/// The retention that a container gives to new blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRetention {
    /// As of a blob.
    pub mode: RetentionMode,
    /// For how long.
    pub period: RetentionPeriod,
}

/// How long a retention is; on disk by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionPeriod {
    /// So many days.
    Days(u32),
    /// So many years.
    Years(u32),
}

/// When something was deleted that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftDelete {
    /// When it was deleted.
    pub since: Timestamp,
    /// Until when it can be restored.
    pub until: Timestamp,
}
