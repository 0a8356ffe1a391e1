//! Split: one partition becomes several. Only metadata is written; nothing is flushed or copied.
//! The children share the parent's memtable, runs and unflushed log, each clipped to its keys.
//! Compaction separates them later. The children are ranges, or the stripes of the parent's range
//! (ADR 0019).
//!
//! While the parent still serves, the log extents of the children are created. Then the parent is
//! held, and the first manifest of each child becomes durable; it links to the end of the parent's
//! log. One coordinator transaction replaces the descriptors (I5, I8), and records which extents
//! each child uses. After a crash before it the parent serves; it has the new extents in its record
//! and removes them. After a crash later the children serve; they replay the parent's log clipped
//! to their keys.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::capacity::ExtentKind;
use crate::index::api::Full;
use crate::index::engine::change::NotChanged;
use crate::index::engine::change::check::{Begin, check_goes_on, check_tiles, refused};
use crate::index::engine::change::descriptors;
use crate::index::engine::change::descriptors::Replaced;
use crate::index::engine::change::held::Held;
use crate::index::engine::change::replacement::{New, Old};
use crate::index::engine::core::Core;
use crate::index::engine::extents::{Extents, Heir, Owner, PinnedExtent, RecordAt};
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::{Claimed, Recovered};
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::{Frozen, Published, Sources};
use crate::index::engine::table::Tables;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;

/// A planned child: its id, its keys, and the log extent created for it.
#[derive(Clone, Debug)]
struct Child {
    id: PartitionId,
    keys: PartitionKeys,
    extent: ExtentId,
}

/// The children. They serve as soon as the caller has stopped the parent.
pub(crate) struct Split {
    /// In key order.
    pub(crate) children: Vec<Partition>,
    /// Since when the parent has made no write durable; monotonic time.
    pub(crate) frozen_at: Duration,
}

impl Partition {
    /// Splits the partition into `parts`, which tile its keys. When this returns, the coordinator
    /// names the children, and the parent takes no writes. Reads of the parent are correct until a
    /// child gets its first write. The caller must stop the parent before that.
    ///
    /// # Errors
    /// See [`NotChanged`].
    pub(crate) async fn split(
        &self,
        parts: Vec<(PartitionId, PartitionKeys)>,
    ) -> Result<Split, NotChanged> {
        let sources = self.core.published().sources;
        check_tiles(&self.core.keys, parts.iter().map(|(_, keys)| keys))
            .map_err(|violation| refused(&self.core.context.deps, &violation))?;
        descriptors::fits(sources.extents().count(), parts.len())?;
        drop(sources);
        // The children share one memtable, so none may be frozen. An earlier flush may have failed
        // and left one.
        self.flush_frozen().await?;
        let _no_flush = self.flushing.lock().await;
        let _no_compaction = self.keep_compaction_out().await;
        let context = &self.core.context;
        let children = self.plan_children(parts).await?;
        let held = match self.hold().await {
            Ok(held) => held,
            Err(failed) => {
                self.forget(&children);
                return Err(failed.into());
            }
        };
        if held.sources.frozen.is_some() {
            held.resume();
            self.forget(&children);
            return Err(Failed::Full(Full::Disks).into());
        }
        let frozen_at = held.since;
        let Swapped { made, replaced } = match swap(&held, &children).await {
            Ok(swapped) => swapped,
            Err(NotChanged::Failed(failed @ (Failed::Fenced | Failed::Other(_)))) => {
                held.stop(&failed);
                return Err(failed.into());
            }
            Err(unchanged) => {
                held.resume();
                self.forget(&children);
                return Err(unchanged);
            }
        };
        let mut fresh = Some(held.core.extents.hand_on());
        let Replaced { revision, records, is_stale } = replaced;
        let children = made.into_iter().zip(records).map(|(made, record)| {
            let Made { new: New { descriptor, heir }, end } = made;
            // The first child gets the unused extents of the parent, and its unused ids.
            let fresh = fresh.take().unwrap_or_default();
            let extents = Extents::new(heir.id, Some(RecordAt { record, revision }), fresh);
            if is_stale {
                extents.set_stale();
            }
            context.release_unused(&extents, &heir.uses);
            let claimed = Claimed { descriptor, revision };
            Self::start(context, child(&held, extents, claimed, end))
        });
        let children = children.collect();
        held.gone();
        Ok(Split { children, frozen_at })
    }

    /// Creates a log extent for each child.
    async fn plan_children(
        &self,
        parts: Vec<(PartitionId, PartitionKeys)>,
    ) -> Result<Vec<Child>, Failed> {
        let owner = Owner { extents: &self.core.extents, epoch: self.core.epoch.next() };
        let mut children = Vec::new();
        self.reserve(parts.len()).await?;
        for (id, keys) in parts {
            match self.core.context.create(ExtentKind::Log, owner).await {
                Ok(PinnedExtent { extent, .. }) => children.push(Child { id, keys, extent }),
                Err(failed) => {
                    self.forget(&children);
                    return Err(failed);
                }
            }
        }
        Ok(children)
    }

    /// Releases the log extents of planned children after a failure.
    fn forget(&self, children: &[Child]) {
        let context = &self.core.context;
        children.iter().for_each(|child| context.release(&self.core.extents, child.extent));
    }

    async fn flush_frozen(&self) -> Result<(), Failed> {
        let sources = self.core.published().sources;
        if sources.frozen.is_some() { self.flush().await } else { Ok(()) }
    }
}

/// A child whose first manifest is durable.
struct Made {
    new: New,
    /// The end of its own log extent.
    end: u64,
}

/// The children, after the coordinator has replaced the parent.
struct Swapped {
    made: Vec<Made>,
    replaced: Replaced,
}

/// Makes the first manifests of the children durable, then replaces the parent.
async fn swap(held: &Held, children: &[Child]) -> Result<Swapped, NotChanged> {
    let deps = &held.core.context.deps;
    let epoch = held.core.epoch.next();
    let manifest = |partition| Manifest {
        partition,
        epoch,
        previous: held.log.link,
        flushed: held.flushed,
        time: held.time,
        runs: held.sources.entries(),
        // A child does not know which of them are about its keys.
        answers: held.answers.clone(),
    };
    let writes = children.iter().map(|child| {
        let manifest = manifest(child.id);
        async move {
            let Manifest { partition, time, .. } = manifest;
            let begin = Begin { partition, sequence: held.sequence, time };
            check_goes_on(begin, std::slice::from_ref(held))
                .map_err(|violation| refused(deps, &violation))?;
            let record = manifest.encode().ok_or(Failed::Full(Full::Disks))?;
            writer::write_first(deps.capacity.as_ref(), child.extent, epoch, vec![record]).await
        }
    });
    // If this fails, no descriptor names these logs: the parent is unchanged and goes on as after a
    // full disk.
    let ends = try_join_all(writes).await.map_err(Failed::before_it_counts)?;
    let log = &held.log.descriptor.log;
    let new: Vec<New> = children
        .iter()
        .map(|child| {
            let log: Vec<ExtentId> = log.iter().copied().chain([child.extent]).collect();
            let uses = log.iter().copied().chain(held.sources.extents()).collect();
            let (id, keys, host) = (child.id, child.keys.clone(), held.log.descriptor.host);
            let descriptor = PartitionDescriptor { id, keys, epoch, log, host };
            New { descriptor, heir: Heir { id, uses } }
        })
        .collect();
    let old = [Old { log: &held.log, extents: &held.core.extents }];
    let replaced = descriptors::replace(deps, &old, &new).await?;
    let made = new.into_iter().zip(ends).map(|(new, end)| Made { new, end }).collect();
    Ok(Swapped { made, replaced })
}

/// Makes a child as a recovery would, but from the memory of the parent.
fn child(held: &Held, extents: Arc<Extents>, claimed: Claimed, end: u64) -> Recovered {
    let Claimed { descriptor, revision } = claimed;
    let context = &held.core.context;
    let share = |run: &Arc<Run>| Arc::new(run.share());
    let active = &held.sources.active;
    let sources = Arc::new(Sources {
        active: Arc::new(Tables::new(Arc::clone(&context.budget))),
        frozen: (!active.is_empty())
            .then(|| Frozen { tables: Arc::clone(active), through: held.sequence }),
        runs: std::array::from_fn(|family| {
            held.sources.runs.get(family).into_iter().flatten().map(share).collect()
        }),
    });
    let owner = Owner { extents: &extents, epoch: descriptor.epoch };
    let published = Published { sources: Arc::clone(&sources), sequence: held.sequence };
    let core = Core::new(Arc::clone(context), owner, descriptor.keys.clone(), published);
    let own = descriptor.log.last().copied();
    let state = LogState {
        highest: held.log.highest.iter().copied().chain([Sequence::new(0)]).collect(),
        link: own.map(|extent| Link { extent, end }),
        descriptor,
        revision,
        last: held.sequence,
    };
    Recovered {
        core,
        log: Log::begun(Arc::clone(context), extents, state),
        sources,
        sequence: held.sequence,
        time: held.time,
        flushed: held.flushed,
        answers: held.answers.clone(),
    }
}
