//! Split: one partition becomes several, by metadata alone. Nothing is flushed or copied: the children share the parent's
//! memtable, runs and unflushed log, each clipped to its range; compaction separates them later.
//!
//! While the parent still serves, the children's log extents are made. Then the committer, between two batches, writes
//! each child's first manifest, which links to where the parent's log ends, and swaps the descriptors in one coordinator
//! transaction (I5, I8). A crash before it leaves the parent and orphaned extents, after it the children, which replay the
//! parent's log clipped to their ranges.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::capacity::ExtentKind;
use crate::coordinator;
use crate::coordinator::{Compare, Op, Revision, TxnReply};
use crate::index::engine::commit::{Command, Committer};
use crate::index::engine::core::{Core, Status};
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer::Log;
use crate::index::engine::partition::Partition;
use crate::index::engine::recover::Recovered;
use crate::index::engine::run::reader::Run;
use crate::index::engine::shared::{Chore, Failed, Shared};
use crate::index::engine::table::Tables;
use crate::index::engine::view::Sources;
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::KeyRange;
use crate::types::PartitionId;

/// Tries of the transaction while its outcome is unknown.
const TRIES: usize = 3;

/// A child to be: its id, its range, and the log extent made for it.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    id: PartitionId,
    range: KeyRange,
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
    /// Splits into these ranges, which tile the partition's. When it returns the coordinator names the children, and the
    /// parent takes no write; its reads are right until a child is given its first write: the caller stops it first.
    ///
    /// # Errors
    /// [`Failed::Full`]: nothing has changed and the partition goes on; the others stop it.
    pub(crate) async fn split(
        &self,
        ranges: Vec<(PartitionId, KeyRange)>,
    ) -> Result<Split, Failed> {
        // Only when nothing is frozen is there one memtable to share: an earlier flush may have failed.
        self.flush_frozen().await?;
        let _no_flush = self.flushing.lock().await;
        let _no_compaction = self.compacting.lock().await;
        let shared = &self.core.shared;
        let epoch = self.core.epoch.next();
        let mut children = Vec::new();
        for (id, range) in ranges {
            match shared.create(ExtentKind::Log, epoch).await {
                Ok(extent) => children.push(Child { id, range, extent }),
                Err(failed) => {
                    self.forget(&children);
                    return Err(failed);
                }
            }
        }
        let split = |answer| Command::Split(children.clone(), answer);
        let answer = self.command(split).await.and_then(|answer| answer);
        let (recovered, frozen_at) = match answer {
            Ok(done) => done,
            Err(failed) => {
                if failed == Failed::Full {
                    self.forget(&children);
                }
                return Err(failed);
            }
        };
        let children = recovered.into_iter().map(|child| Self::start(shared, child)).collect();
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

impl Committer {
    /// Carries a split out. After it the parent's committer only refuses.
    pub(crate) async fn split(
        &mut self,
        children: Vec<Child>,
    ) -> Result<(Vec<Recovered>, Duration), Failed> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if self.sources.frozen.is_some() {
            return Err(Failed::Full);
        }
        let frozen_at = self.core.shared.parts.env.clock.monotonic();
        let epoch = self.core.epoch.next();
        let ends = self.write_manifests(&children, epoch).await?;
        let descriptors: Vec<PartitionDescriptor> = children
            .iter()
            .map(|child| PartitionDescriptor {
                id: child.id,
                range: child.range.clone(),
                epoch,
                log: self.log.descriptor().log.iter().copied().chain([child.extent]).collect(),
            })
            .collect();
        let revision = match self.swap(&descriptors).await {
            Ok(revision) => revision,
            Err(failed) => {
                self.stop_after(&failed);
                return Err(failed);
            }
        };
        // From here on the children own the range; whoever still waits is told so.
        self.failed = Some(Failed::Fenced);
        let recovered = descriptors
            .into_iter()
            .zip(ends)
            .map(|(descriptor, end)| self.child((descriptor, revision), end))
            .collect();
        self.let_go();
        Ok((recovered, frozen_at))
    }

    /// Makes each child's state durable in its own log. Fails without harm: no descriptor names those logs yet.
    async fn write_manifests(&self, children: &[Child], epoch: Epoch) -> Result<Vec<u64>, Failed> {
        let writes = children.iter().map(|child| {
            let manifest = Manifest {
                partition: child.id,
                epoch,
                previous: self.log.link(),
                ..self.manifest(&self.sources, self.flushed)
            };
            async move {
                let record = manifest.encode().ok_or(Failed::Full)?;
                self.log.append_first(child.extent, epoch, record).await
            }
        });
        // Whatever went wrong, the parent is as it was: the caller may go on as after a full disk.
        try_join_all(writes).await.map_err(|_| Failed::Full)
    }

    /// Replaces the parent's descriptor by the children's, all or nothing.
    async fn swap(&self, children: &[PartitionDescriptor]) -> Result<Revision, Failed> {
        let coordinator = self.core.shared.parts.coordinator.as_ref();
        let parent = PartitionDescriptor::coordinator_key(self.core.id);
        let key = |child: &PartitionDescriptor| PartitionDescriptor::coordinator_key(child.id);
        let mut when = vec![Compare::ModRevision(parent.clone(), self.log.revision())];
        when.extend(children.iter().map(|child| Compare::Absent(key(child))));
        let mut then = vec![Op::Delete(parent.clone())];
        then.extend(children.iter().map(|child| Op::Put(key(child), child.encode())));
        let unknown = |error: coordinator::Error| Failed::Other(error.to_string());
        let mut doubt = false;
        for _ in 0..TRIES {
            match coordinator.txn(&when, &then).await {
                Ok(TxnReply::Committed(revision)) => return Ok(revision),
                Ok(TxnReply::Rejected(_)) if !doubt => return Err(Failed::Fenced),
                Ok(TxnReply::Rejected(_)) | Err(coordinator::Error::Ambiguous) => doubt = true,
                // Surely nothing changed.
                Err(coordinator::Error::Unavailable { .. }) if !doubt => return Err(Failed::Full),
                Err(error) => return Err(unknown(error)),
            }
            let Some(child) = children.first() else { return Err(Failed::Full) };
            let found = coordinator.get(&key(child)).await.map_err(unknown)?;
            if let Some(found) = found.filter(|found| found.value == child.encode()) {
                return Ok(found.mod_revision);
            }
            let found = coordinator.get(&parent).await.map_err(unknown)?;
            if found.is_none_or(|found| found.mod_revision != self.log.revision()) {
                return Err(Failed::Fenced);
            }
        }
        Err(Failed::Other("the coordinator's answers stay unknown".into()))
    }

    /// A child as recovery would make it, but from memory.
    fn child(&self, claimed: (PartitionDescriptor, Revision), end: u64) -> Recovered {
        let shared = &self.core.shared;
        let (descriptor, _) = &claimed;
        for extent in &self.log.descriptor().log {
            shared.own(*extent);
        }
        let share = |run: &Arc<Run>| {
            shared.own(run.extent());
            Arc::new(run.share())
        };
        let frozen = (!self.sources.active.is_empty())
            .then(|| (Arc::clone(&self.sources.active), self.sequence));
        let sources = Arc::new(Sources {
            active: Arc::new(Tables::new(Arc::clone(&shared.budget))),
            frozen,
            runs: std::array::from_fn(|family| {
                self.sources.runs.get(family).into_iter().flatten().map(share).collect()
            }),
        });
        let identity = (descriptor.id, descriptor.epoch);
        let published = (Arc::clone(&sources), self.sequence);
        let core = Core::new(Arc::clone(shared), identity, descriptor.range.clone(), published);
        Recovered {
            core,
            log: Log::split_off(&self.log, claimed, end),
            sources,
            sequence: self.sequence,
            time: self.time,
            flushed: self.flushed,
        }
    }

    /// Ends the parent's own use of what the children share.
    fn let_go(&self) {
        let shared: &Shared = &self.core.shared;
        if let Some(link) = self.log.link() {
            shared.chores.add(Chore::Seal(link.extent, self.core.epoch));
        }
        for extent in &self.log.descriptor().log {
            shared.chores.add(Chore::Leave(*extent));
        }
        self.sources.runs.iter().flatten().for_each(|run| run.retire());
        shared.wake.notify_one();
    }

    /// Tells everybody who waits, and whoever comes until nobody can, that the partition is elsewhere.
    pub(crate) async fn send_away(&mut self) {
        self.core.stop(Status::Lost);
        self.queue.close();
        while let Some(waiting) = self.queue.recv().await {
            drop(waiting.answer.send(Err(Failed::Fenced.into())));
        }
    }
}
