//! Merge: neighbours become one, or all stripes of a range. Runs are taken over as they are: each
//! is first brought to hold rows of one of the partitions only. While they still serve, they are
//! flushed; what was written since is copied into the log of the new one, which needs neither of
//! the old logs.
//!
//! A crash before the transaction leaves the old partitions, the first of which has the new extent
//! in its record and removes it; after it the new one (I8), which removes the old logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::capacity::ExtentKind;
use crate::index::api::{Error, Full};
use crate::index::engine::change::NotChanged;
use crate::index::engine::change::check::{Begin, check_goes_on, refused};
use crate::index::engine::change::descriptors;
use crate::index::engine::change::held::Held;
use crate::index::engine::change::replacement::{New, Old};
use crate::index::engine::core::Core;
use crate::index::engine::extents::{Extents, Heir, Owner, PinnedExtent, RecordAt};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::record::BatchBuilder;
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::merge::Merge;
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::Recovered;
use crate::index::engine::shared::Shared;
use crate::index::engine::sources::{Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::invariant::Invariant;
use crate::index::map::PartitionDescriptor;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Rows copied while writes wait are at most this; more means that the partitions are too busy to
/// be merged.
const TAIL_BYTES_MAX: usize = 1 << 20;
/// Bytes of rows in one record of the copied tail, as in a batch of the committer.
const RECORD_BYTES: usize = 40 << 10;
/// Tries to bring partitions into runs of their own while they go on writing.
const TRIES: usize = 4;

/// A partition that serves as soon as those it was made of are stopped.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) partition: Partition,
    /// Monotonic time since which no write of the first partition was made durable.
    pub(crate) frozen_at: Duration,
}

/// Merges neighbours, given in key order, or all stripes of a range, by number, into partition
/// `id`. When it returns the coordinator names that one; the old ones take no write, and their
/// reads are right until the new one is given its first write: the caller stops them first.
///
/// # Errors
/// [`NotChanged::Busy`] and [`Failed::Full`]: nothing has changed and they go on; the others stop
/// them.
pub(crate) async fn merge(
    shared: &Arc<Shared>,
    id: PartitionId,
    parts: &[Arc<Partition>],
) -> Result<Merged, NotChanged> {
    for _ in 0..TRIES {
        for part in parts {
            part.flush().await?;
            while !part.is_separate() && part.separate().await? {}
        }
        // Always in key order: nobody else takes locks of two partitions.
        let mut kept_out = Vec::new();
        for part in parts {
            kept_out.push((part.flushing.lock().await, part.keep_compaction_out().await));
        }
        if parts.iter().all(|part| part.is_separate()) {
            return quiet(shared, id, parts).await;
        }
    }
    Err(NotChanged::Busy("compactions keep running"))
}

impl Partition {
    /// Whether nothing waits to be flushed and no run holds rows of others.
    fn is_separate(&self) -> bool {
        let sources = self.core.published().sources;
        let own = sources.runs.iter().flatten().all(|run| run.lies_in(&self.core.keys));
        sources.frozen.is_none() && own
    }
}

/// Merges partitions that neither flush nor compact.
async fn quiet(
    shared: &Arc<Shared>,
    id: PartitionId,
    parts: &[Arc<Partition>],
) -> Result<Merged, NotChanged> {
    let epoch = parts.iter().map(|part| part.core.epoch).max().unwrap_or(Epoch::new(0)).next();
    let first = parts.first().ok_or_else(|| Failed::Refused("nothing to merge".into()))?;
    first.reserve(1).await?;
    let extents = &first.core.extents;
    let owner = Owner { extents, epoch };
    let PinnedExtent { extent, pin: _pin } = shared.create(ExtentKind::Log, owner).await?;
    let forget = || shared.release(extents, extent);
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
    match unite(shared, United { id, epoch, extent }, &held).await {
        Ok(recovered) => {
            let frozen_at = held.iter().map(|held| held.since).min().unwrap_or_default();
            let partition = Partition::start(shared, recovered);
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

/// The new partition: its id and epoch, and the extent of its log.
#[derive(Clone, Copy)]
struct United {
    id: PartitionId,
    epoch: Epoch,
    extent: ExtentId,
}

/// Writes the new partition's log and has the coordinator name it.
async fn unite(
    shared: &Arc<Shared>,
    united: United,
    held: &[Held],
) -> Result<Recovered, NotChanged> {
    let United { id, epoch, extent } = united;
    let flushed = held.iter().map(|held| held.sequence).max().unwrap_or(Sequence::new(0));
    let time = held.iter().map(|held| held.time).max().unwrap_or(Timestamp::ZERO);
    let parts = held.iter().map(|held| held.core.keys.as_ref());
    let keys = PartitionKeys::joined(parts);
    let keys = keys.ok_or_else(|| {
        refused(&shared.parts, &Invariant::Tiling.violated("they are no neighbours"))
    })?;
    let tail = tail(held).await?;
    let sources = Sources {
        active: Arc::new(Tables::new(Arc::clone(&shared.budget))),
        frozen: None,
        runs: std::array::from_fn(|family| {
            let of_all = held.iter().filter_map(|held| held.sources.runs.get(family));
            of_all.flatten().cloned().collect()
        }),
    };
    let manifest =
        Manifest { partition: id, epoch, previous: None, flushed, time, runs: sources.entries() };
    let mut records = vec![manifest.encode().ok_or(Failed::Full(Full::Disks))?];
    let mut sequence = flushed;
    for rows in tail {
        sequence = sequence.plus(1);
        let mut batch = BatchBuilder::new(sequence);
        batch.push(&rows);
        records.push(batch.finish(time).ok_or(Failed::Full(Full::Disks))?);
        for (family, key, value) in rows.changes {
            sources.active.insert(family, key, sequence, value);
        }
    }
    let parts = &shared.parts;
    check_goes_on(Begin { partition: id, sequence, time }, held)
        .map_err(|violation| refused(parts, &violation))?;
    // Whatever goes wrong, no descriptor names that log: the old partitions are as they were.
    let end = writer::write_first(parts.capacity.as_ref(), extent, epoch, records)
        .await
        .map_err(Failed::before_it_counts)?;
    let (log, host) = (vec![extent], shared.host);
    let descriptor = PartitionDescriptor { id, keys: keys.clone(), epoch, log, host };
    let old = held.iter().map(|held| Old { log: &held.log, extents: &held.core.extents });
    let old: Vec<Old<'_>> = old.collect();
    let uses: BTreeSet<ExtentId> = sources.extents().chain([extent]).collect();
    let heir = Heir { id, uses: uses.clone() };
    let new = [New { descriptor: descriptor.clone(), heir }];
    let replaced = descriptors::replace(parts, &old, &new).await?;
    let revision = replaced.revision;
    let fresh = held.iter().flat_map(|held| held.core.extents.hand_on()).collect();
    let record = replaced.records.into_iter().next().unwrap_or_default();
    let extents = Extents::new(id, Some(RecordAt { record, revision }), fresh);
    if replaced.is_stale {
        extents.set_stale();
    }
    shared.release_unused(&extents, &uses);
    let sources = Arc::new(own(sources));
    let published = Published { sources: Arc::clone(&sources), sequence };
    let owner = Owner { extents: &extents, epoch };
    let core = Core::new(Arc::clone(shared), owner, keys, published);
    let link = Some(Link { extent, end });
    let state = LogState { descriptor, revision, highest: vec![sequence], link, last: sequence };
    let log = Log::begun(Arc::clone(shared), extents, state);
    Ok(Recovered { core, log, sources, sequence, time, flushed })
}

/// The same sources with uses of the runs of its own.
fn own(mut sources: Sources) -> Sources {
    for run in sources.runs.iter_mut().flatten() {
        *run = Arc::new(run.share());
    }
    sources
}

/// What is in memory only, newest versions, in pieces that fit a record each.
async fn tail(held: &[Held]) -> Result<Vec<RowBatch>, NotChanged> {
    let unreadable = |error: Error| Failed::Other(error.to_string().into());
    let mut pieces = vec![RowBatch::default()];
    let (mut all, mut bytes) = (0, 0);
    for held in held {
        for family in Family::ALL {
            let active = Arc::clone(&held.sources.active);
            let mut rows = Merge::of_tables(active, family, held.sequence, &held.core.keys);
            // Memory only: there is nothing to fail on.
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
                    piece.changes.push((family, key, value));
                }
            }
        }
    }
    pieces.retain(|piece| !piece.changes.is_empty());
    Ok(pieces)
}
