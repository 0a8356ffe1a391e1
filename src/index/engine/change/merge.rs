//! Merge: neighbouring partitions, or all stripes of a range, become one partition. The new one
//! takes over their runs. Before that, runs with rows of other partitions are rewritten, and all
//! partitions are flushed while they still serve. Rows written since then are copied into the log
//! of the new partition, which needs none of the old logs.
//!
//! After a crash before the transaction the old partitions serve; the first of them has the new log
//! extent in its record and removes it. After a crash later the new partition serves (I8) and
//! removes the old logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::capacity::ExtentKind;
use crate::index::api::{Error, Full};
use crate::index::engine::answers::Answers;
use crate::index::engine::change::NotChanged;
use crate::index::engine::change::check::{Begin, check_goes_on, refused};
use crate::index::engine::change::descriptors;
use crate::index::engine::change::held::Held;
use crate::index::engine::change::replacement::{New, Old};
use crate::index::engine::context::HostContext;
use crate::index::engine::core::Core;
use crate::index::engine::extents::{Extents, Heir, Owner, PinnedExtent, RecordAt};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::record::BatchBuilder;
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::merge_rows::MergedRows;
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::Recovered;
use crate::index::engine::sources::{Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::invariant::Invariant;
use crate::index::map::PartitionDescriptor;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::RowChange;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// The most bytes of rows that are copied while writes wait. With more the partitions are too busy
/// to be merged.
const TAIL_BYTES_MAX: usize = 1 << 20;
/// Bytes of rows in one record of the copied tail, as in a batch of the committer.
const RECORD_BYTES: usize = 40 << 10;
/// The most tries to separate the runs of partitions that go on writing.
const TRIES: usize = 4;

/// The new partition. It serves as soon as the caller has stopped the old ones.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) partition: Partition,
    /// Since when the first held partition has made no write durable; monotonic time.
    pub(crate) frozen_at: Duration,
}

/// Merges partitions into partition `id`: neighbours in key order, or all stripes of a range by
/// number. When this returns, the coordinator names the new partition, and the old ones take no
/// writes. Reads of the old ones are correct until the new one gets its first write. The caller
/// must stop the old ones before that.
///
/// # Errors
/// After [`NotChanged::Busy`], [`Failed::Full`] and [`Failed::Refused`] nothing has changed and the
/// old partitions go on. The other errors stop them.
pub(crate) async fn merge(
    context: &Arc<HostContext>,
    id: PartitionId,
    parts: &[Arc<Partition>],
) -> Result<Merged, NotChanged> {
    for _ in 0..TRIES {
        for part in parts {
            part.flush().await?;
            while !part.is_separate() && part.separate().await? {}
        }
        // Locks are taken in key order. No other code takes the locks of two partitions.
        let mut kept_out = Vec::new();
        for part in parts {
            kept_out.push((part.flushing.lock().await, part.keep_compaction_out().await));
        }
        if parts.iter().all(|part| part.is_separate()) {
            return quiet(context, id, parts).await;
        }
    }
    Err(NotChanged::Busy("compactions keep running"))
}

impl Partition {
    /// Whether no memtable is frozen and no run holds rows of other partitions.
    fn is_separate(&self) -> bool {
        let sources = self.core.published().sources;
        let own = sources.runs.iter().flatten().all(|run| run.lies_in(&self.core.keys));
        sources.frozen.is_none() && own
    }
}

/// Merges partitions whose flush and compaction are locked out.
async fn quiet(
    context: &Arc<HostContext>,
    id: PartitionId,
    parts: &[Arc<Partition>],
) -> Result<Merged, NotChanged> {
    let epoch = parts.iter().map(|part| part.core.epoch).max().unwrap_or(Epoch::new(0)).next();
    let first = parts.first().ok_or_else(|| Failed::Refused("nothing to merge".into()))?;
    first.reserve(1).await?;
    let extents = &first.core.extents;
    let owner = Owner { extents, epoch };
    let PinnedExtent { extent, pin: _pin } = context.create(ExtentKind::Log, owner).await?;
    let forget = || context.release(extents, extent);
    let mut held: Vec<Held> = Vec::new();
    for part in parts {
        match part.hold().await {
            Ok(one) => held.push(one),
            Err(failed) => {
                held.into_iter().for_each(Held::resume);
                forget();
                return Err(failed.into());
            }
        }
    }
    match unite(context, United { id, epoch, extent }, &held).await {
        Ok(recovered) => {
            let frozen_at = held.iter().map(|held| held.since).min().unwrap_or_default();
            let partition = Partition::start(context, recovered);
            held.into_iter().for_each(Held::gone);
            Ok(Merged { partition, frozen_at })
        }
        Err(NotChanged::Failed(failed @ (Failed::Fenced | Failed::Other(_)))) => {
            held.into_iter().for_each(|held| held.stop(&failed));
            Err(failed.into())
        }
        Err(unchanged) => {
            held.into_iter().for_each(Held::resume);
            forget();
            Err(unchanged)
        }
    }
}

/// The id and epoch of the new partition, and the extent of its log.
#[derive(Clone, Copy)]
struct United {
    id: PartitionId,
    epoch: Epoch,
    extent: ExtentId,
}

/// Writes the log of the new partition, and replaces the old descriptors by its descriptor.
async fn unite(
    context: &Arc<HostContext>,
    united: United,
    held: &[Held],
) -> Result<Recovered, NotChanged> {
    let United { id, epoch, extent } = united;
    let flushed = held.iter().map(|held| held.sequence).max().unwrap_or(Sequence::new(0));
    let time = held.iter().map(|held| held.time).max().unwrap_or(Timestamp::ZERO);
    let parts = held.iter().map(|held| held.core.keys.as_ref());
    let keys = PartitionKeys::joined(parts);
    let keys = keys.ok_or_else(|| {
        refused(&context.deps, &Invariant::Tiling.violated("the partitions are not neighbours"))
    })?;
    let tail = tail(held).await?;
    let sources = Sources {
        active: Arc::new(Tables::new(Arc::clone(&context.budget))),
        frozen: None,
        runs: std::array::from_fn(|family| {
            let of_all = held.iter().filter_map(|held| held.sources.runs.get(family));
            of_all.flatten().cloned().collect()
        }),
    };
    let answers = Answers::of_all(held.iter().map(|held| &held.answers));
    let manifest = Manifest {
        partition: id,
        epoch,
        previous: None,
        flushed,
        time,
        runs: sources.entries(),
        answers: answers.clone(),
    };
    let mut records = vec![manifest.encode().ok_or(Failed::Full(Full::Disks))?];
    let mut sequence = flushed;
    for rows in tail {
        sequence = sequence.plus(1);
        let mut batch = BatchBuilder::new(sequence, 4096);
        batch.push(&rows);
        records.push(batch.finish(time).ok_or(Failed::Full(Full::Disks))?);
        for RowChange { family, key, value } in rows.changes {
            sources.active.insert(family, key, sequence, value);
        }
    }
    let deps = &context.deps;
    check_goes_on(Begin { partition: id, sequence, time }, held)
        .map_err(|violation| refused(deps, &violation))?;
    // If this fails, no descriptor names the log, and the old partitions are unchanged.
    let end = writer::write_first(deps.capacity.as_ref(), extent, epoch, records)
        .await
        .map_err(Failed::before_it_counts)?;
    let (log, host) = (vec![extent], context.host);
    let descriptor = PartitionDescriptor { id, keys: keys.clone(), epoch, log, host };
    let old = held.iter().map(|held| Old { log: &held.log, extents: &held.core.extents });
    let old: Vec<Old<'_>> = old.collect();
    let uses: BTreeSet<ExtentId> = sources.extents().chain([extent]).collect();
    let heir = Heir { id, uses: uses.clone() };
    let new = [New { descriptor: descriptor.clone(), heir }];
    let replaced = descriptors::replace(deps, &old, &new).await?;
    let revision = replaced.revision;
    let fresh = held.iter().flat_map(|held| held.core.extents.hand_on()).collect();
    let record = replaced.records.into_iter().next().unwrap_or_default();
    let extents = Extents::new(id, Some(RecordAt { record, revision }), fresh);
    if replaced.is_stale {
        extents.set_stale();
    }
    context.release_unused(&extents, &uses);
    let sources = Arc::new(own(sources));
    let published = Published { sources: Arc::clone(&sources), sequence };
    let owner = Owner { extents: &extents, epoch };
    let core = Core::new(Arc::clone(context), owner, keys, published);
    let link = Some(Link { extent, end });
    let state = LogState { descriptor, revision, highest: vec![sequence], link, last: sequence };
    let log = Log::begun(Arc::clone(context), extents, state);
    Ok(Recovered { core, log, sources, sequence, time, flushed, answers })
}

/// The same sources, with an own use of each run.
fn own(mut sources: Sources) -> Sources {
    for run in sources.runs.iter_mut().flatten() {
        *run = Arc::new(run.share());
    }
    sources
}

/// The rows that are only in memory, in their newest versions, in pieces that each fit in a record.
async fn tail(held: &[Held]) -> Result<Vec<RowBatch>, NotChanged> {
    let unreadable = |error: Error| Failed::Other(error.to_string().into());
    let mut pieces = vec![RowBatch::default()];
    let (mut all, mut bytes) = (0, 0);
    for held in held {
        for family in Family::ALL {
            let active = Arc::clone(&held.sources.active);
            let mut rows = MergedRows::of_tables(active, family, held.sequence, &held.core.keys);
            // These rows are in memory; reading them does not fail.
            while let Some((key, value)) = rows.next().await.map_err(unreadable)? {
                let cost = key.len() + value.as_ref().map_or(0, Bytes::len);
                all += cost;
                if all > TAIL_BYTES_MAX {
                    return Err(NotChanged::Busy("writes keep coming: too much would be copied"));
                }
                if bytes + cost > RECORD_BYTES && bytes > 0 {
                    pieces.push(RowBatch::default());
                    bytes = 0;
                }
                bytes += cost;
                if let Some(piece) = pieces.last_mut() {
                    piece.changes.push(RowChange { family, key, value });
                }
            }
        }
    }
    pieces.retain(|piece| !piece.changes.is_empty());
    Ok(pieces)
}
