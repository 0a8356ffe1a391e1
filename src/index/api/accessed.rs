//! That a blob was read.

use serde::Deserialize;
use serde::Serialize;

use crate::types::BlobKey;
use crate::types::Timestamp;

/// Remembers a read of a blob. Changes neither tag nor time of last change, and no lease is in its
/// way. A blob that is gone, was changed since, or has a read of the same day remembered stays as
/// it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRead {
    /// The blob; reads of snapshots are not remembered.
    pub key: BlobKey,
    /// When it was read.
    pub at: Timestamp,
}
