//! Runs are written and opened, with or without a partition.

use std::sync::Arc;

use crate::capacity::ExtentKind;
use crate::index::api::Error;
use crate::index::engine::codec;
use crate::index::engine::extents::{Extents, Pin};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::merge::Merge;
use crate::index::engine::run::reader::Run;
use crate::index::engine::run::writer::RunWriter;
use crate::index::engine::shared::{Shared, Unfinished};
use crate::index::engine::table::Tables;
use crate::index::rows::Family;
use crate::types::Epoch;
use crate::types::PartitionKeys;
use crate::types::Sequence;

/// Rows written before other tasks have a turn: a fraction of a millisecond.
const ROWS_AT_A_TIME: u64 = 128;

/// Writes one run of what `rows` yields; `None` when that is nothing. `what` is the family, the
/// most rows there can be, and whether tombstones may be left out. No manifest names it yet: it
/// goes when it is dropped, unless [`Run::keep`] is called before one does.
pub(crate) async fn write_run(
    shared: &Arc<Shared>,
    (extents, epoch): (&Arc<Extents>, Epoch),
    what: (Family, u64, bool),
    mut rows: Merge,
) -> Result<Option<Arc<Run>>, Failed> {
    let (family, rows_max, bottom) = what;
    let unreadable = |error: Error| Failed::Other(error.to_string().into());
    let mut next = rows.next().await.map_err(unreadable)?;
    while bottom && matches!(next, Some((_, None))) {
        next = rows.next().await.map_err(unreadable)?;
    }
    let Some(mut row) = next else { return Ok(None) };
    let (extent, pin) = shared.create(ExtentKind::Run, epoch, extents).await?;
    // No manifest names it yet, and its writer may be given up in the middle.
    let unfinished = Unfinished::new(shared, extents, extent);
    let capacity = Arc::clone(&shared.parts.capacity);
    let mut writer = RunWriter::new(capacity, (extent, epoch), (family, rows.stripe()), rows_max);
    let entry = async {
        for number in 1_u64.. {
            let (key, value) = row;
            if !(bottom && value.is_none()) {
                writer.push(key, value).await?;
            }
            match rows.next().await.map_err(unreadable)? {
                Some(more) => row = more,
                None => break,
            }
            if number.is_multiple_of(ROWS_AT_A_TIME) {
                // Most rows come from memory: without this a thread would do nothing else for long.
                tokio::task::yield_now().await;
            }
        }
        writer.finish().await.map_err(Failed::from)
    };
    let opened = match entry.await {
        Ok(Some(entry)) => open_pinned(shared, (entry, pin)).await.map_err(unreadable).map(Some),
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
pub(crate) async fn open_run(shared: &Shared, entry: RunEntry) -> Result<Arc<Run>, Error> {
    let pin = shared.pins.pin(entry.footer.extent);
    open_pinned(shared, (entry, pin)).await
}

async fn open_pinned(shared: &Shared, pinned: (RunEntry, Pin)) -> Result<Arc<Run>, Error> {
    let capacity = Arc::clone(&shared.parts.capacity);
    let cache = Arc::clone(&shared.cache);
    let run = Run::open(pinned, capacity, cache, Arc::clone(&shared.chores)).await?;
    Ok(Arc::new(run))
}

/// Writes memtables as runs without a partition: for recovery of more rows than memory may hold.
pub(crate) async fn spill(
    shared: &Arc<Shared>,
    owner: (&Arc<Extents>, Epoch),
    (tables, through): (&Arc<Tables>, Sequence),
    keys: &PartitionKeys,
) -> Result<Vec<Arc<Run>>, Failed> {
    let mut runs = Vec::new();
    for family in Family::ALL {
        let merge = Merge::of_tables(Arc::clone(tables), family, through, keys);
        let rows = codec::wide(tables.len(family));
        runs.extend(write_run(shared, owner, (family, rows, false), merge).await?);
    }
    Ok(runs)
}
