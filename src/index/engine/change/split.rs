//! Split: one partition becomes several, by metadata alone. Nothing is flushed or copied: the
//! children share the parent's memtable, runs and unflushed log, each clipped to its keys;
//! compaction separates them later. The children are ranges, or the stripes of the parent's range
//! (ADR 0019).
//!
//! While the parent still serves, the children's log extents are made. Then, with the parent held,
//! each child's first manifest, which links to where the parent's log ends, becomes durable, and
//! one coordinator transaction swaps the descriptors (I5, I8), and records which children use what.
//! A crash before it leaves the parent, which has the new extents in its record and removes them;
//! after it the children, which replay the parent's log clipped to their keys.

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

/// A child to be: its id, its keys, and the log extent made for it.
#[derive(Clone, Debug)]
struct Child {
    id: PartitionId,
    keys: PartitionKeys,
    extent: ExtentId,
}

/// Children that serve as soon as the parent is stopped, and when writes were frozen.
pub(crate) struct Split {
    /// In key order.
    pub(crate) children: Vec<Partition>,
    /// Monotonic time at which the last write of the parent was durable.
    pub(crate) frozen_at: Duration,
}

impl Partition {
    /// Splits into these, which tile the partition's keys. When it returns the coordinator names
    /// the children, and the parent takes no write; its reads are right until a child is given its
    /// first write: the caller stops it first.
    ///
    /// # Errors
    /// See [`NotChanged`].
    pub(crate) async fn split(
        &self,
        parts: Vec<(PartitionId, PartitionKeys)>,
    ) -> Result<Split, NotChanged> {
        let sources = self.core.published().sources;
        check_tiles(&self.core.keys, parts.iter().map(|(_, keys)| keys))
            .map_err(|violation| refused(&self.core.shared.parts, &violation))?;
        descriptors::fits(sources.extents().count(), parts.len())?;
        drop(sources);
        // Only when nothing is frozen is there one memtable to share: an earlier flush may have
        // failed.
        self.flush_frozen().await?;
        let _no_flush = self.flushing.lock().await;
        let _no_compaction = self.keep_compaction_out().await;
        let shared = &self.core.shared;
        let owner = Owner { extents: &self.core.extents, epoch: self.core.epoch.next() };
        let mut children = Vec::new();
        self.reserve(parts.len()).await?;
        for (id, keys) in parts {
            match shared.create(ExtentKind::Log, owner).await {
                Ok(PinnedExtent { extent, .. }) => children.push(Child { id, keys, extent }),
                Err(failed) => {
                    self.forget(&children);
                    return Err(failed.into());
                }
            }
        }
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
            // What nobody uses, ids under which nothing was created among it, is recorded with the
            // first.
            let fresh = fresh.take().unwrap_or_default();
            let extents = Extents::new(heir.id, Some(RecordAt { record, revision }), fresh);
            if is_stale {
                extents.set_stale();
            }
            shared.release_unused(&extents, &heir.uses);
            let claimed = Claimed { descriptor, revision };
            Self::start(shared, child(&held, extents, claimed, end))
        });
        let children = children.collect();
        held.gone();
        Ok(Split { children, frozen_at })
    }

    /// Removes the logs of children that are not to be.
    fn forget(&self, children: &[Child]) {
        let shared = &self.core.shared;
        children.iter().for_each(|child| shared.release(&self.core.extents, child.extent));
    }

    async fn flush_frozen(&self) -> Result<(), Failed> {
        let sources = self.core.published().sources;
        if sources.frozen.is_some() { self.flush().await } else { Ok(()) }
    }
}

/// A child that the coordinator names.
struct Made {
    new: New,
    /// Where its log ends.
    end: u64,
}

/// The children of a parent that the coordinator names no more.
struct Swapped {
    made: Vec<Made>,
    replaced: Replaced,
}

/// Makes the children durable, then true.
async fn swap(held: &Held, children: &[Child]) -> Result<Swapped, NotChanged> {
    let parts = &held.core.shared.parts;
    let epoch = held.core.epoch.next();
    let manifest = |partition| Manifest {
        partition,
        epoch,
        previous: held.log.link,
        flushed: held.flushed,
        time: held.time,
        runs: held.sources.entries(),
    };
    let writes = children.iter().map(|child| {
        let manifest = manifest(child.id);
        async move {
            let Manifest { partition, time, .. } = manifest;
            let begin = Begin { partition, sequence: held.sequence, time };
            check_goes_on(begin, std::slice::from_ref(held))
                .map_err(|violation| refused(parts, &violation))?;
            let record = manifest.encode().ok_or(Failed::Full(Full::Disks))?;
            writer::write_first(parts.capacity.as_ref(), child.extent, epoch, vec![record]).await
        }
    });
    // Whatever goes wrong, no descriptor names those logs: the parent is as it was and may go on as
    // after a full disk.
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
    let replaced = descriptors::replace(parts, &old, &new).await?;
    let made = new.into_iter().zip(ends).map(|(new, end)| Made { new, end }).collect();
    Ok(Swapped { made, replaced })
}

/// A child as recovery would make it, but from memory.
fn child(held: &Held, extents: Arc<Extents>, claimed: Claimed, end: u64) -> Recovered {
    let Claimed { descriptor, revision } = claimed;
    let shared = &held.core.shared;
    let share = |run: &Arc<Run>| Arc::new(run.share());
    let active = &held.sources.active;
    let sources = Arc::new(Sources {
        active: Arc::new(Tables::new(Arc::clone(&shared.budget))),
        frozen: (!active.is_empty())
            .then(|| Frozen { tables: Arc::clone(active), through: held.sequence }),
        runs: std::array::from_fn(|family| {
            held.sources.runs.get(family).into_iter().flatten().map(share).collect()
        }),
    });
    let owner = Owner { extents: &extents, epoch: descriptor.epoch };
    let published = Published { sources: Arc::clone(&sources), sequence: held.sequence };
    let core = Core::new(Arc::clone(shared), owner, descriptor.keys.clone(), published);
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
        log: Log::begun(Arc::clone(shared), extents, state),
        sources,
        sequence: held.sequence,
        time: held.time,
        flushed: held.flushed,
    }
}
