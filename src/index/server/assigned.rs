//! Opens the partitions that the map gives to this process, and leaves those that it gives to
//! others. In a cluster a manager names the host of each partition in its descriptor.
//!
//! A split or merge of this process names it in the new descriptors too. Those partitions are not
//! opened here: an old partition is open until the new ones replace it, and has their keys.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::coordinator::Follows;
use crate::index::engine::Partition;
use crate::index::map::FollowedMap;
use crate::index::map::PartitionDescriptor;
use crate::index::server::IndexServer;
use crate::index::server::host::Closed;
use crate::types::Epoch;
use crate::types::PartitionId;

/// Partitions that are opened at a time. Most of the time they wait for the end of leases.
const PARALLEL: usize = 256;
/// How often it is looked without a change of the map.
const LOOK: Duration = Duration::from_secs(1);
/// How soon after a try that failed. The pause doubles with each one.
const AGAIN: Duration = Duration::from_millis(50);
/// The longest pause.
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// What became of a partition that was not where the map has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    /// It is, or is tried again.
    Done,
    /// It is not, and is looked at again soon.
    Again,
}

impl IndexServer {
    /// Opens what this map gives to this process from now on, and leaves what it takes away, until
    /// the server stops.
    pub fn follow_map(self: &Arc<Self>, map: Arc<FollowedMap>) {
        let Ok(deps) = self.deps() else { return };
        let (env, stop, server) = (deps.env.clone(), self.stop.clone(), Arc::clone(self));
        let run = move || Arc::clone(&server).keep_to_map(Arc::clone(&map));
        drop(env.supervise("assigned partitions", stop, run));
    }

    async fn keep_to_map(self: Arc<Self>, map: Arc<FollowedMap>) {
        let Ok(deps) = self.deps() else { return };
        let (clock, tasks) = (Arc::clone(&deps.env.clock), deps.env.tasks.clone());
        // Those that are tried, and how often one has failed.
        let (mut trying, mut failed) = (BTreeSet::new(), BTreeMap::<PartitionId, u32>::new());
        let mut tries = FuturesUnordered::new();
        while !self.stop.is_cancelled() {
            let seen = map.revision();
            let room = PARALLEL.saturating_sub(trying.len());
            let misplaced = self.misplaced(&map);
            failed.retain(|id, _| misplaced.contains(id));
            let new: Vec<PartitionId> = misplaced.difference(&trying).take(room).copied().collect();
            for id in new {
                trying.insert(id);
                let pause = pause_after(failed.get(&id).copied().unwrap_or_default());
                let (server, map) = (Arc::clone(&self), Arc::clone(&map));
                // In a task of its own, so that a panic ends no other one.
                let placing = async move { server.place(&map, id).await };
                let placing = tasks.spawn("assigned partition", placing);
                let (clock, stop) = (&clock, &self.stop);
                tries.push(async move {
                    let placed = placing.await.unwrap_or(Placed::Again);
                    if placed == Placed::Again {
                        tokio::select! {
                            biased;
                            () = stop.cancelled() => {}
                            () = clock.sleep(pause) => {}
                        }
                    }
                    (id, placed)
                });
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                Some((id, placed)) = tries.next(), if !tries.is_empty() => {
                    trying.remove(&id);
                    match placed {
                        Placed::Done => drop(failed.remove(&id)),
                        Placed::Again => *failed.entry(id).or_default() += 1,
                    }
                }
                () = map.changed_after(seen) => {}
                () = clock.sleep(LOOK) => {}
            }
        }
        while tries.next().await.is_some() {}
    }

    /// The partitions that are open here and should not be, or should be and are not.
    fn misplaced(&self, map: &FollowedMap) -> BTreeSet<PartitionId> {
        let here = self.node();
        let is_missing = |one: &PartitionDescriptor| {
            one.host.node() == here && !self.has(one) && !self.covers(one)
        };
        let missing = map.all(is_missing).into_iter().map(|found| found.descriptor.id);
        let open = self.hosts.iter().flat_map(|host| host.opened.ids());
        let is_elsewhere = |id: &PartitionId| match map.get(*id) {
            Some(one) => one.host.node() != here,
            // Another process has split or merged it since.
            None => self
                .hosts
                .iter()
                .any(|host| host.opened.get(*id).is_some_and(|open| is_lost(&open))),
        };
        missing.chain(open.filter(is_elsewhere)).collect()
    }

    /// Whether a partition is open here, or is tried again. One that was lost, or that another
    /// process has had since, is not.
    fn has(&self, one: &PartitionDescriptor) -> bool {
        self.hosts.iter().any(|host| match host.opened.get(one.id) {
            Some(open) => !is_lost(&open) && open.core.epoch >= one.epoch,
            // One that did not open here may have been mended by another process since.
            None => host.opened.has_closed(one.id, one.epoch),
        })
    }

    /// Whether another partition with some of its keys is open here, as the parent of a split is
    /// until its children replace it.
    fn covers(&self, one: &PartitionDescriptor) -> bool {
        let is_covered = |open: Arc<Partition>| {
            open.core.id != one.id && open.core.keys.overlaps(&one.keys) && !is_lost(&open)
        };
        self.hosts.iter().any(|host| host.opened.all().into_iter().any(is_covered))
    }

    /// Opens a partition, or leaves it, as the map has it.
    async fn place(&self, map: &FollowedMap, id: PartitionId) -> Placed {
        // Waits for changes of it. What tries to open it may learn that another process has it.
        let Some(_claim) = self.claims.claim(&[id]).await else { return Placed::Again };
        if self.stop.is_cancelled() {
            return Placed::Again;
        }
        match map.get(id) {
            Some(one) if one.host.node() != self.node() => self.leave(id, one.epoch).await,
            None => self.leave(id, Epoch::new(u64::MAX)).await,
            Some(one) if self.has(&one) || self.covers(&one) => Placed::Again,
            Some(one) => {
                self.leave(id, one.epoch).await;
                self.open_assigned(&one).await
            }
        }
    }

    async fn open_assigned(&self, descriptor: &PartitionDescriptor) -> Placed {
        let id = descriptor.id;
        // The manager does not know the hosts of a process apart.
        let host = self.hosts.iter().min_by_key(|host| host.opened.ids().len());
        let Some(host) = host else { return Placed::Again };
        let not = match Partition::open_or_tell(&host.context, id).await {
            Ok(partition) => {
                tracing::info!(partition = %id, "the partition is served here now");
                host.opened.add(partition);
                return Placed::Done;
            }
            Err(not) => not,
        };
        match Closed::after(not) {
            Ok(closed) => {
                host.context.deps.metrics.closed(closed.is_quarantined(), 1);
                host.opened.add_not_open(closed);
                Placed::Done
            }
            Err(error) => {
                tracing::debug!(partition = %id, %error, "an assigned partition does not open");
                Placed::Again
            }
        }
    }

    /// Leaves what is open here of a partition, at this epoch or an earlier one. What is open at a
    /// later epoch was opened after the map said so.
    async fn leave(&self, id: PartitionId, epoch: Epoch) -> Placed {
        let mut placed = Placed::Again;
        for host in &self.hosts {
            if let Some(closed) = host.opened.forget_closed(id) {
                host.context.deps.metrics.closed(closed.is_quarantined(), -1);
                placed = Placed::Done;
            }
            if let Some(old) =
                host.opened.get(id).filter(|old| old.core.epoch <= epoch || is_lost(old))
            {
                tracing::info!(partition = %id, "the partition is not served here any more");
                host.leave(&old).await;
                placed = Placed::Done;
            }
        }
        placed
    }
}

/// The pause after a try, when so many before it have failed.
fn pause_after(failed: u32) -> Duration {
    AGAIN.saturating_mul(1 << failed.min(10)).min(AGAIN_MAX)
}

/// Whether another process has fenced a partition.
fn is_lost(open: &Arc<Partition>) -> bool {
    open.core.may_read().is_err()
}

#[cfg(test)]
mod tests;
