//! A change of the runs that hold a partition's rows.

use std::sync::Arc;

use crate::index::engine::run::reader::Run;
use crate::index::rows::Family;
use crate::types::ExtentId;
use crate::types::Sequence;

/// New runs that replace a memtable or older runs. If the edit is dropped before it is installed,
/// the new runs are released.
#[derive(Debug)]
pub(crate) enum Edit {
    /// These runs replace the frozen memtable.
    Flushed { through: Sequence, runs: Vec<Arc<Run>> },
    /// These runs are merged into one, or into none if no row was left.
    Compacted { family: Family, merged: Vec<ExtentId>, into: Option<Arc<Run>> },
}

impl Edit {
    /// The new runs.
    pub(super) fn runs(&self) -> Vec<Arc<Run>> {
        match self {
            Self::Flushed { runs, .. } => runs.clone(),
            Self::Compacted { into, .. } => into.iter().cloned().collect(),
        }
    }
}
