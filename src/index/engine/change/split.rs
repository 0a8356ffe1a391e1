//! Split: one partition becomes several, by metadata alone. Nothing is flushed or copied: the children share the parent's
//! memtable, runs and unflushed log, each clipped to its keys; compaction separates them later. The children are ranges, or the
//! stripes of the parent's range (ADR 0019).
//!
//! While the parent still serves, the children's log extents are made. Then, with the parent held, each child's first
//! manifest, which links to where the parent's log ends, becomes durable, and one coordinator transaction swaps the
//! descriptors (I5, I8). A crash before it leaves the parent and orphaned extents, after it the children, which replay the
//! parent's log clipped to their keys.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::capacity::ExtentKind;
use crate::coordinator::Revision;
use crate::index::engine::change::descriptors;
use crate::index::engine::change::hold::Held;
use crate::index::engine::core::Core;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::writer;
use crate::index::engine::log::writer::{Log, LogState};
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::Recovered;
use crate::index::engine::run::reader::Run;
use crate::index::engine::shared::{Chore, Failed};
use crate::index::engine::table::Tables;
use crate::index::engine::view::Sources;
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
    /// Splits into these, which tile the partition's keys. When it returns the coordinator names the children, and the
    /// parent takes no write; its reads are right until a child is given its first write: the caller stops it first.
    ///
    /// # Errors
    /// [`Failed::Full`], [`Failed::Refused`]: nothing has changed and the partition goes on; the
    /// others stop it.
    pub(crate) async fn split(
        &self,
        parts: Vec<(PartitionId, PartitionKeys)>,
    ) -> Result<Split, Failed> {
        // Only when nothing is frozen is there one memtable to share: an earlier flush may have failed.
        self.flush_frozen().await?;
        let _no_flush = self.flushing.lock().await;
        let _no_compaction = self.keep_compaction_out().await;
        let shared = &self.core.shared;
        let epoch = self.core.epoch.next();
        let mut children = Vec::new();
        for (id, keys) in parts {
            match shared.create(ExtentKind::Log, epoch).await {
                Ok(extent) => children.push(Child { id, keys, extent }),
                Err(failed) => {
                    self.forget(&children);
                    return Err(failed);
                }
            }
        }
        let held = match self.hold().await {
            Ok(held) => held,
            Err(failed) => {
                self.forget(&children);
                return Err(failed);
            }
        };
        if held.sources.frozen.is_some() {
            held.resume();
            self.forget(&children);
            return Err(Failed::Full);
        }
        let frozen_at = held.since;
        let (descriptors, ends, revision) = match swap(&held, &children).await {
            Ok(swapped) => swapped,
            Err(unchanged @ (Failed::Full | Failed::Refused(_))) => {
                held.resume();
                self.forget(&children);
                return Err(unchanged);
            }
            Err(failed) => {
                held.stop(&failed, children.iter().map(|child| child.extent).collect());
                return Err(failed);
            }
        };
        let children = descriptors.into_iter().zip(ends);
        let children = children
            .map(|(descriptor, end)| Self::start(shared, child(&held, (descriptor, revision), end)))
            .collect();
        // Only now that the children have noted their use of what they share.
        held.gone();
        Ok(Split { children, frozen_at })
    }

    /// Removes the logs of children that are not to be.
    fn forget(&self, children: &[Child]) {
        let shared = &self.core.shared;
        children.iter().for_each(|child| shared.chores.add(Chore::Leave(child.extent)));
        shared.wake.notify_one();
    }

    async fn flush_frozen(&self) -> Result<(), Failed> {
        let (sources, _) = self.core.published();
        if sources.frozen.is_some() { self.flush().await } else { Ok(()) }
    }
}

/// Makes the children durable, then true. Gives their descriptors, where the log of each ends, and the revision.
async fn swap(
    held: &Held,
    children: &[Child],
) -> Result<(Vec<PartitionDescriptor>, Vec<u64>, Revision), Failed> {
    let parts = &held.core.shared.parts;
    let epoch = held.core.epoch.next();
    let writes = children.iter().map(|child| {
        let manifest = Manifest {
            partition: child.id,
            epoch,
            previous: held.log.link,
            flushed: held.flushed,
            time: held.time,
            runs: held.sources.entries(),
        };
        async move {
            let record = manifest.encode().ok_or(Failed::Full)?;
            writer::write_first(parts.capacity.as_ref(), (child.extent, epoch), vec![record]).await
        }
    });
    // Whatever goes wrong, no descriptor names those logs: the parent is as it was and may go on as after a full disk.
    let ends = try_join_all(writes).await.map_err(Failed::before_it_counts)?;
    let descriptors: Vec<PartitionDescriptor> = children
        .iter()
        .map(|child| PartitionDescriptor {
            id: child.id,
            keys: child.keys.clone(),
            epoch,
            log: held.log.descriptor.log.iter().copied().chain([child.extent]).collect(),
            host: held.log.descriptor.host,
        })
        .collect();
    let revision =
        descriptors::replace(parts.coordinator.as_ref(), &[&held.log], &descriptors).await?;
    Ok((descriptors, ends, revision))
}

/// A child as recovery would make it, but from memory.
fn child(held: &Held, claimed: (PartitionDescriptor, Revision), end: u64) -> Recovered {
    let shared = &held.core.shared;
    let (descriptor, revision) = claimed;
    for extent in &held.log.descriptor.log {
        shared.own(*extent);
    }
    let share = |run: &Arc<Run>| {
        shared.own(run.extent());
        Arc::new(run.share())
    };
    let active = &held.sources.active;
    let sources = Arc::new(Sources {
        active: Arc::new(Tables::new(Arc::clone(&shared.budget))),
        frozen: (!active.is_empty()).then(|| (Arc::clone(active), held.sequence)),
        runs: std::array::from_fn(|family| {
            held.sources.runs.get(family).into_iter().flatten().map(share).collect()
        }),
    });
    let identity = (descriptor.id, descriptor.epoch);
    let published = (Arc::clone(&sources), held.sequence);
    let core = Core::new(Arc::clone(shared), identity, descriptor.keys.clone(), published);
    let own = descriptor.log.last().copied();
    let state = LogState {
        highest: held.log.highest.iter().copied().chain([Sequence::new(0)]).collect(),
        link: own.map(|extent| Link { extent, end }),
        descriptor,
        revision,
    };
    Recovered {
        core,
        log: Log::begun(Arc::clone(shared), state),
        sources,
        sequence: held.sequence,
        time: held.time,
        flushed: held.flushed,
    }
}
