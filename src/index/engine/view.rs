//! What a partition's rows are at one instant.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::index::api::Error;
use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::merge::Merge;
use crate::index::engine::run::reader::Run;
use crate::index::engine::table::Tables;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::PartitionKeys;
use crate::types::Sequence;

/// Where a partition's rows are; replaced as a whole by freeze, flush and compaction.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Takes new rows.
    pub(crate) active: Arc<Tables>,
    /// Full, being flushed: all commits up to the number that are not in runs.
    pub(crate) frozen: Option<(Arc<Tables>, Sequence)>,
    /// The runs of each family, newest first.
    pub(crate) runs: [Vec<Arc<Run>>; Family::ALL.len()],
}

impl Sources {
    /// The runs of one family, newest first.
    pub(crate) fn runs(&self, family: Family) -> &[Arc<Run>] {
        self.runs.get(usize::from(family as u8)).map_or(&[], Vec::as_slice)
    }

    /// The same, to change.
    pub(crate) fn runs_mut(&mut self, family: Family) -> &mut Vec<Arc<Run>> {
        self.runs.get_mut(usize::from(family as u8)).expect("one list for each family")
    }

    /// What a manifest says of the runs.
    pub(crate) fn entries(&self) -> Vec<RunEntry> {
        self.runs.iter().flatten().map(|run| *run.entry()).collect()
    }

    /// Memtables, newest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Tables>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|(tables, _)| tables))
    }
}

/// All rows as of one commit: the newest source that has a key decides, since rows only move from newer to older ones.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) keys: Arc<PartitionKeys>,
}

#[async_trait]
impl Rows for Snapshot {
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if !self.keys.contains(key) {
            return Ok(None);
        }
        let owned = Bytes::copy_from_slice(key);
        for tables in self.sources.tables() {
            if let Some(value) = tables.get(family, &owned, self.sequence) {
                return Ok(value);
            }
        }
        for run in self.sources.runs(family) {
            if let Some(value) = run.get(key).await? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let range = self.keys.range();
        let from = from.max(range.low().as_bytes());
        let high = range.high().map(|high| high.as_bytes().as_ref());
        let to = match (to, high) {
            (Some(to), Some(high)) => Some(to.min(high)),
            (to, high) => to.or(high),
        };
        let mut rows = Vec::new();
        if limit == 0 || to.is_some_and(|to| to <= from) {
            return Ok(rows);
        }
        let mut merge = Merge::of_snapshot(self, family, (from, to), limit);
        while rows.len() < limit {
            match merge.next().await? {
                Some((key, Some(value))) => rows.push(Row { key, value }),
                Some((_, None)) => {}
                None => break,
            }
        }
        Ok(rows)
    }
}
