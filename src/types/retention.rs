//! Retention of blobs: until when a blob must not be removed or changed. Soft deletion: until when
//! a deleted blob can be restored.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// The retention of a version: it must neither be removed nor changed until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Whether the time may be shortened.
    pub mode: RetentionMode,
    /// Until when.
    pub until: Timestamp,
}

/// Whether a retention may be shortened or removed. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    /// By principals with a separate permission: S3's `GOVERNANCE`, Blob's `Unlocked`.
    Unlocked,
    /// By no principal: S3's `COMPLIANCE`, Blob's `Locked`.
    Locked,
}

/// The object lock of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLock {
    /// The retention of new blobs whose request names none.
    pub default: Option<DefaultRetention>,
}

/// The retention that a container gives to new blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRetention {
    /// Whether the retention may be shortened or removed.
    pub mode: RetentionMode,
    /// For how long.
    pub period: RetentionPeriod,
}

/// The length of a retention. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionPeriod {
    /// A number of days.
    Days(u32),
    /// A number of years.
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
