//! How blobs are protected from overwriting and deletion.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::ObjectLock;
use crate::types::Versioning;

/// How the blobs of a container are protected when they are overwritten or deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// Whether they are kept as versions.
    pub versioning: Option<Versioning>,
    /// For how long what would be removed can be restored (soft delete); `None`: it is removed.
    pub restorable_for: Option<Duration>,
    /// The object lock of the container. Blobs have a retention or a legal hold only with it.
    pub lock: Option<ObjectLock>,
}
