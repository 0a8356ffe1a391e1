//! Compaction: several runs of a family become one, so that a read examines few runs and the space
//! of deleted rows is released.

use std::ops::Range;
use std::sync::Arc;

use crate::index::engine::commands::Command;
use crate::index::engine::edit::Edit;
use crate::index::engine::failed::Failed;
use crate::index::engine::merge_rows::MergedRows;
use crate::index::engine::partition::Partition;
use crate::index::engine::run::reader::Run;
use crate::index::engine::write_run::{RunPlan, write_run};
use crate::index::rows::Family;
use crate::types::PartitionKeys;

/// This many runs of similar size are merged.
const LIKE_RUNS: usize = 4;
/// With this many runs of a family the cheapest merge is done, whatever the sizes.
const RUNS_MAX: usize = 8;
/// A run is similar to the newer ones if it is at most this many times as large as all of them
/// together.
const LIKE_RATIO: u64 = 1;
/// A family is merged as a whole when this percentage of its rows are tombstones, so that the space
/// of deleted rows is released.
const TOMBSTONES_MAX_PERCENT: u64 = 30;
/// The same at rest. There the main family, which lists read, is also merged when this percentage
/// of its rows lies over older runs.
const AT_REST_MAX_PERCENT: u64 = 10;
/// Fewer tombstones, or fewer rows over older runs, are not worth a merge of a family as a whole.
const ROWS_MIN: u64 = 10_000;
/// A run is rewritten when this percentage of it are rows of other partitions. Below that, millions
/// of rows would be rewritten to drop a few.
const FOREIGN_PERCENT: u64 = 20;

/// Which runs are worth a merge.
#[derive(Clone, Copy, Debug)]
struct Worth {
    tombstones_percent: u64,
    /// Rows of the main family that lie over older runs. `None` if they are not counted.
    over_percent: Option<u64>,
    foreign_percent: u64,
}

const BUSY: Worth = Worth {
    tombstones_percent: TOMBSTONES_MAX_PERCENT,
    over_percent: None,
    foreign_percent: FOREIGN_PERCENT,
};
const AT_REST: Worth = Worth {
    tombstones_percent: AT_REST_MAX_PERCENT,
    over_percent: Some(AT_REST_MAX_PERCENT),
    foreign_percent: FOREIGN_PERCENT,
};
/// For a change of the map, which wants runs of one partition.
const SEPARATE: Worth = Worth { foreign_percent: 0, ..BUSY };

impl Partition {
    /// Merges runs of one family, if any family needs it, and returns whether it did. It gives up
    /// if a change of the map waits for it.
    ///
    /// # Errors
    /// [`Failed`]. The partition goes on, unless another owner has it or it is unknown which extent
    /// its log continues in.
    pub(crate) async fn compact(&self) -> Result<bool, Failed> {
        self.compact_if(BUSY).await
    }

    /// As [`Self::compact`], for a partition that has not been written for a while: merges a family
    /// as a whole already when a tenth of its rows are tombstones or, in the main family, may have
    /// older versions in other runs.
    pub(crate) async fn compact_at_rest(&self) -> Result<bool, Failed> {
        self.compact_if(AT_REST).await
    }

    /// As [`Self::compact`], but also rewrites runs that hold only a few rows of other partitions.
    pub(crate) async fn separate(&self) -> Result<bool, Failed> {
        self.compact_if(SEPARATE).await
    }

    async fn compact_if(&self, worth: Worth) -> Result<bool, Failed> {
        let _one = self.compacting.lock().await;
        if !self.core.may_write_log() {
            // The range got other owners while this waited for the lock.
            return Ok(false);
        }
        self.core.runs_are_looked_at(worth.over_percent.is_some());
        let sources = self.core.published().sources;
        for family in Family::ALL {
            let runs = sources.runs(family);
            let picked = pick(family, runs, worth);
            if let Some(range) =
                picked.or_else(|| foreign(runs, &self.core.keys, worth.foreign_percent))
            {
                let is_bottom = range.end == runs.len();
                let chosen = runs.get(range).unwrap_or_default();
                let merged = self.merge_runs(family, chosen, is_bottom).await;
                // A compaction that gave up or had no space may succeed at any time. A damaged run
                // fails as long as the runs are the same.
                if matches!(
                    merged,
                    Ok(false) | Err(Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_))
                ) {
                    self.core.runs_are_changed();
                }
                return merged;
            }
        }
        Ok(false)
    }

    /// Merges `runs` into one. `is_bottom` says that the oldest run is among them: then no older
    /// row needs a tombstone. Returns false if it gave up.
    pub(super) async fn merge_runs(
        &self,
        family: Family,
        runs: &[Arc<Run>],
        is_bottom: bool,
    ) -> Result<bool, Failed> {
        let context = &self.core.context;
        let rows_max = runs.iter().map(|run| run.entry().rows).sum();
        let merge = MergedRows::of_runs(runs, family, &self.core.keys);
        let plan = RunPlan { family, rows_max, is_bottom };
        self.reserve(1).await?;
        let into = tokio::select! {
            biased;
            () = self.compaction_yield.wanted() => return Ok(false),
            into = write_run(context, self.core.owner(), plan, merge) => into?,
        };
        let merged = runs.iter().map(|run| run.extent()).collect();
        let install = |answer| Command::Install(Edit::Compacted { family, merged, into }, answer);
        if let Err(failed) = self.command(install).await? {
            self.core.runs_are_changed();
            return Err(failed);
        }
        context.deps.metrics.compacted();
        context.wake.notify_one();
        Ok(true)
    }
}

/// The oldest run of which at least `percent` percent are rows of other partitions. Once rewritten
/// it is not shared.
fn foreign(runs: &[Arc<Run>], keys: &PartitionKeys, percent: u64) -> Option<Range<usize>> {
    let is_foreign = |run: &Arc<Run>| !run.lies_in(keys) && run.percent_outside(keys) >= percent;
    let last = runs.iter().rposition(is_foreign)?;
    Some(last..last + 1)
}

/// Chooses which of a family's runs, newest first, to merge now.
fn pick(family: Family, runs: &[Arc<Run>], worth: Worth) -> Option<Range<usize>> {
    let sizes: Vec<u64> = runs.iter().map(|run| run.entry().bytes).collect();
    let rows: u64 = runs.iter().map(|run| run.entry().rows).sum();
    let are_many =
        |count: u64, percent| count >= ROWS_MIN && count * 100 >= rows.saturating_mul(percent);
    let tombstones: u64 = runs.iter().map(|run| run.tombstones()).sum();
    let over = worth.over_percent.filter(|_| family == Family::Main);
    if are_many(tombstones, worth.tombstones_percent)
        || over.is_some_and(|percent| are_many(rows_over_older(runs), percent))
    {
        return Some(0..runs.len());
    }
    pick_by_size(&sizes)
}

/// An estimate of the rows that a scan reads beside rows of older runs.
fn rows_over_older(mut runs: &[Arc<Run>]) -> u64 {
    let mut rows = 0u64;
    while let Some((newest, older)) = runs.split_first() {
        rows = rows.saturating_add(newest.rows_over(older));
        runs = older;
    }
    rows
}

/// Size-tiered choice: the newest runs as long as their sizes are similar; the cheapest adjacent
/// runs if there are too many.
fn pick_by_size(sizes: &[u64]) -> Option<Range<usize>> {
    for start in 0..sizes.len() {
        let mut sum = 0u64;
        let mut end = start;
        for size in sizes.get(start..).unwrap_or_default() {
            if end > start && *size > sum.saturating_mul(LIKE_RATIO).max(1 << 20) {
                break;
            }
            sum = sum.saturating_add(*size);
            end += 1;
        }
        if end - start >= LIKE_RUNS {
            return Some(start..end);
        }
    }
    if sizes.len() < RUNS_MAX {
        return None;
    }
    let surplus = sizes.len() - RUNS_MAX + 1;
    let cheapest = sizes
        .windows(surplus + 1)
        .enumerate()
        .min_by_key(|(_, window)| window.iter().fold(0u64, |sum, size| sum.saturating_add(*size)));
    cheapest.map(|(start, window)| start..start + window.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn pick_by_size_merges_four_like_runs_and_leaves_a_large_one() {
        assert_eq!(pick_by_size(&[MIB, MIB, MIB, MIB, 900 * MIB]), Some(0..4));
        assert_eq!(pick_by_size(&[MIB, MIB, MIB]), None);
        assert_eq!(pick_by_size(&[]), None);
        assert_eq!(pick_by_size(&[MIB, 3 * MIB, 9 * MIB, 27 * MIB]), None);
    }

    #[test]
    fn pick_by_size_ends_below_the_limit_when_sizes_differ_much() {
        let sizes: Vec<u64> = (0..10).map(|power| (1 << 20) << (2 * power)).collect();
        let range = pick_by_size(&sizes).expect("more than the limit");
        assert_eq!(range, 0..4);
        assert_eq!(sizes.len() - range.len() + 1, RUNS_MAX - 1);
    }
}
