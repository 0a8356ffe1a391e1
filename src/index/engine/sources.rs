//! The sources of a partition's rows: memtables and runs.

use std::sync::Arc;

use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::run::reader::Run;
use crate::index::engine::table::Tables;
use crate::index::rows::Family;
use crate::types::ExtentId;
use crate::types::Sequence;

/// A frozen memtable: the rows of all commits up to `through` that are not in runs.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) tables: Arc<Tables>,
    /// The last commit in it.
    pub(crate) through: Sequence,
}

/// The sources that readers see.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) sources: Arc<Sources>,
    /// The last commit that is visible.
    pub(crate) sequence: Sequence,
}

/// All memtables and runs. A freeze, flush or compaction replaces the whole value.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The memtable that takes new rows.
    pub(crate) active: Arc<Tables>,
    /// The memtable that is being flushed.
    pub(crate) frozen: Option<Frozen>,
    /// The runs of each family, newest first.
    pub(crate) runs: [Vec<Arc<Run>>; Family::ALL.len()],
}

impl Sources {
    /// The runs of one family, newest first.
    pub(crate) fn runs(&self, family: Family) -> &[Arc<Run>] {
        self.runs.get(usize::from(family as u8)).map_or(&[], Vec::as_slice)
    }

    /// As [`Self::runs`], mutable.
    pub(crate) fn runs_mut(&mut self, family: Family) -> &mut Vec<Arc<Run>> {
        self.runs.get_mut(usize::from(family as u8)).expect("one list for each family")
    }

    /// The entries of all runs in a manifest.
    pub(crate) fn entries(&self) -> Vec<RunEntry> {
        self.runs.iter().flatten().map(|run| *run.entry()).collect()
    }

    /// The extents of all runs.
    pub(crate) fn extents(&self) -> impl Iterator<Item = ExtentId> {
        self.runs.iter().flatten().map(|run| run.extent())
    }

    /// Memtables, newest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Tables>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|frozen| &frozen.tables))
    }
}
