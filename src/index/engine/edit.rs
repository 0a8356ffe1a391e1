//! A change of where a partition's rows are.

use std::sync::Arc;

use crate::index::engine::run::reader::Run;
use crate::index::rows::Family;
use crate::types::ExtentId;
use crate::types::Sequence;

/// New runs for old places. They go with it unless it is carried out.
#[derive(Debug)]
pub(crate) enum Edit {
    /// The frozen memtable is in these runs.
    Flushed { through: Sequence, runs: Vec<Arc<Run>> },
    /// These runs are merged into one, or none if nothing was left.
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
