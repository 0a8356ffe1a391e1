//! What a change of a container or blob answers.

use serde::Deserialize;
use serde::Serialize;

use crate::types::Etag;
use crate::types::Timestamp;

/// Tag and time after a change of a container or blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The new tag.
    pub etag: Etag,
    /// The new time.
    pub last_modified: Timestamp,
}
