//! The progress of a backup.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

/// The progress of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Extents that are in the copy.
    pub extents: usize,
    /// Extents of the store.
    pub extents_total: usize,
    /// Bytes copied. Bytes that an earlier backup had copied are not counted.
    pub copied_bytes: u64,
}

/// Gets the progress.
pub type Progress = Arc<dyn Fn(Step) + Send + Sync>;
