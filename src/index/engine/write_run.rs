//! Writes and opens runs, for an open partition or during its recovery.

use std::sync::Arc;

use crate::capacity::ExtentKind;
use crate::index::api::Error;
use crate::index::engine::codec;
use crate::index::engine::context::{HostContext, Unfinished};
use crate::index::engine::extents::{Owner, PinnedExtent};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::merge_rows::MergedRows;
use crate::index::engine::run::reader::{PinnedRun, Run};
use crate::index::engine::run::writer::{RunTarget, RunWriter};
use crate::index::engine::sources::Frozen;
use crate::index::rows::Family;
use crate::types::PartitionKeys;

/// Rows written before the task yields: a fraction of a millisecond.
const ROWS_AT_A_TIME: u64 = 128;

/// A run to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlan {
    pub(crate) family: Family,
    /// The most rows there can be.
    pub(crate) rows_max: u64,
    /// Whether no older run has rows that its tombstones hide. Then the tombstones are left out.
    pub(crate) is_bottom: bool,
}

/// Writes the rows to one run; `None` if there are none. No manifest names the run yet: its extent
/// is released when the run is dropped, unless [`Run::keep`] is called first.
pub(crate) async fn write_run(
    context: &Arc<HostContext>,
    owner: Owner<'_>,
    plan: RunPlan,
    mut rows: MergedRows,
) -> Result<Option<Arc<Run>>, Failed> {
    let RunPlan { family, rows_max, is_bottom } = plan;
    let Owner { extents, epoch } = owner;
    let unreadable = |error: Error| Failed::Other(error.to_string().into());
    let mut next = rows.next().await.map_err(unreadable)?;
    while is_bottom && matches!(next, Some((_, None))) {
        next = rows.next().await.map_err(unreadable)?;
    }
    let Some(mut row) = next else { return Ok(None) };
    let PinnedExtent { extent, pin } = context.create(ExtentKind::Run, owner).await?;
    // No manifest names the extent yet, and this task may be cancelled while it writes.
    let unfinished = Unfinished::new(context, extents, extent);
    let capacity = Arc::clone(&context.deps.capacity);
    let target = RunTarget { extent, epoch, family, stripe: rows.stripe(), rows_max };
    let mut writer = RunWriter::new(capacity, target);
    let entry = async {
        for number in 1_u64.. {
            let (key, value) = row;
            if !(is_bottom && value.is_none()) {
                writer.push(key, value).await?;
            }
            match rows.next().await.map_err(unreadable)? {
                Some(more) => row = more,
                None => break,
            }
            if number.is_multiple_of(ROWS_AT_A_TIME) {
                // Most rows come from memory, so reading them does not yield.
                tokio::task::yield_now().await;
            }
        }
        writer.finish().await.map_err(Failed::from)
    };
    let opened = match entry.await {
        Ok(Some(entry)) => {
            open_pinned(context, PinnedRun { entry, pin }).await.map_err(unreadable).map(Some)
        }
        Ok(None) => Ok(None),
        Err(failed) => Err(failed),
    };
    if let Ok(Some(run)) = &opened {
        run.retire(extents);
        unfinished.finish();
    }
    opened
}

/// Opens a run of a manifest.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Unavailable`].
pub(crate) async fn open_run(context: &HostContext, entry: RunEntry) -> Result<Arc<Run>, Error> {
    let pin = context.pins.pin(entry.footer.extent);
    open_pinned(context, PinnedRun { entry, pin }).await
}

async fn open_pinned(context: &HostContext, pinned: PinnedRun) -> Result<Arc<Run>, Error> {
    let capacity = Arc::clone(&context.deps.capacity);
    let cache = Arc::clone(&context.cache);
    let run = Run::open(pinned, capacity, cache, Arc::clone(&context.chores)).await?;
    Ok(Arc::new(run))
}

/// Writes memtables to runs during recovery, when the log has more rows than memory may hold.
pub(crate) async fn spill(
    context: &Arc<HostContext>,
    owner: Owner<'_>,
    rows: &Frozen,
    keys: &PartitionKeys,
) -> Result<Vec<Arc<Run>>, Failed> {
    let mut runs = Vec::new();
    for family in Family::ALL {
        let merge = MergedRows::of_tables(Arc::clone(&rows.tables), family, rows.through, keys);
        let rows_max = codec::wide(rows.tables.len(family));
        let plan = RunPlan { family, rows_max, is_bottom: false };
        runs.extend(write_run(context, owner, plan, merge).await?);
    }
    Ok(runs)
}
