//! Deletes the rows of deleted containers.
//!
//! A request that found the container before the deletion may commit after it, and after the first
//! purge. So the container is remembered until all such requests and their commits have ended,
//! however slowly their bodies arrive (`index/inflight/changes.rs`). Then it is purged a second
//! time and forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::AskPartition;
use crate::index::ForgetContainer;
use crate::index::PartitionMap;
use crate::index::PurgeContainer;
use crate::index::ReadDeadContainers;
use crate::index::RequestMark;
use crate::index::Running;
use crate::reclaim::error::Error;
use crate::reclaim::partitions::target;
use crate::reclaim::state::Reclaim;
use crate::reclaim::walk;
use crate::types::ContainerKey;
use crate::types::RoutingKey;

/// Deleted containers that were purged once. A restart loses them, and the wait begins again.
#[derive(Debug, Default)]
pub(super) struct Purged(BTreeMap<ContainerKey, FirstPurge>);

/// The first purge of a container.
#[derive(Clone, Copy, Debug)]
struct FirstPurge {
    /// When, by the monotonic clock.
    at: Duration,
    /// Requests from before this mark may have found the container.
    requests: RequestMark,
    /// Commits from before this mark may be theirs. Taken when the last of them had ended.
    commits: Option<RequestMark>,
}

impl FirstPurge {
    /// Whether a request may still add rows.
    ///
    /// # Errors
    /// When that is not known.
    async fn may_grow(&mut self, reclaim: &Reclaim) -> Result<bool, Error> {
        let change = Running::Change { before: self.requests };
        if self.commits.is_none() && !reclaim.is_running(change).await? {
            self.commits = Some(reclaim.requests.mark().await?);
        }
        match self.commits {
            Some(before) => reclaim.is_running(Running::Commit { before }).await,
            None => Ok(true),
        }
    }
}

/// Whether a purge came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It did, or it is not due yet.
    Done,
    /// The pass may make no more writes.
    OutOfWrites,
}

/// Purges deleted containers, a bounded part. Returns whether there was anything to do. A container
/// that cannot be purged because a partition fails does not stop the others.
pub(super) async fn purge(
    reclaim: &Reclaim,
    map: &PartitionMap,
    purged: &mut Purged,
) -> Result<bool, Error> {
    let writes_max = reclaim.config.writes_per_pass;
    let mut pass = PurgePass { reclaim, map, purged, writes_left: writes_max };
    let deleted = pass.deleted_containers().await?;
    pass.purged.0.retain(|container, _| deleted.contains(container));
    for container in deleted {
        match pass.purge(container).await {
            Ok(Progress::Done) => {}
            Ok(Progress::OutOfWrites) => return Ok(true),
            Err(error) => reclaim.pass_over("purge", error)?,
        }
    }
    Ok(pass.writes_left < writes_max)
}

struct PurgePass<'a> {
    reclaim: &'a Reclaim,
    map: &'a PartitionMap,
    purged: &'a mut Purged,
    writes_left: usize,
}

impl PurgePass<'_> {
    async fn deleted_containers(&self) -> Result<Vec<ContainerKey>, Error> {
        let mut all = Vec::new();
        for partition in self.reclaim.own(self.map) {
            let found = self.reclaim.host.ask(target(partition), ReadDeadContainers);
            let deleted = match found.await {
                Ok(deleted) => deleted,
                Err(error) => {
                    self.reclaim.pass_over("deleted containers", error.into())?;
                    continue;
                }
            };
            let keys = deleted.into_iter().map(|one| (one.account, one.container));
            all.extend(keys.map(|(account, id)| ContainerKey { account, id }));
        }
        Ok(all)
    }

    /// Purges one deleted container if it is due.
    async fn purge(&mut self, container: ContainerKey) -> Result<Progress, Error> {
        let now = self.reclaim.env.clock.monotonic();
        let again = match self.purged.0.get_mut(&container) {
            Some(first) => {
                let young = now.saturating_sub(first.at) < self.reclaim.config.purge_again_after;
                if first.may_grow(self.reclaim).await? || young {
                    return Ok(Progress::Done);
                }
                // A commit whose outcome was unknown is decided when its partition commits again.
                let range = RoutingKey::container_range(container.account, container.id);
                walk::prove_in(self.reclaim, self.map, &range).await?;
                true
            }
            None => false,
        };
        if self.remove_rows(container).await? == Progress::OutOfWrites {
            return Ok(Progress::OutOfWrites);
        }
        if again {
            self.forget(container).await?;
            self.purged.0.remove(&container);
            self.reclaim.metrics.purged_containers.inc();
        } else {
            let at = self.reclaim.env.clock.monotonic();
            let requests = self.reclaim.requests.mark().await?;
            self.purged.0.insert(container, FirstPurge { at, requests, commits: None });
        }
        Ok(Progress::Done)
    }

    /// Deletes the rows of a container in all partitions that have some.
    async fn remove_rows(&mut self, container: ContainerKey) -> Result<Progress, Error> {
        let ContainerKey { account, id } = container;
        let range = RoutingKey::container_range(account, id);
        for partition in self.map.partitions() {
            let Some(part) = range.intersect(partition.keys.range()) else { continue };
            let mut from = Some(part.low().as_bytes().clone());
            while let Some(start) = from {
                self.reclaim.go_on()?;
                let Some(left) = self.writes_left.checked_sub(1) else {
                    return Ok(Progress::OutOfWrites);
                };
                self.writes_left = left;
                let limit = self.reclaim.config.blobs_per_write;
                let purge = PurgeContainer { account, container: id, from: start, limit };
                from = self.reclaim.host.tell(target(partition), purge).await?;
                self.reclaim.metrics.purge_writes.inc();
            }
        }
        Ok(Progress::Done)
    }

    /// Deletes the row that remembers the container.
    async fn forget(&self, container: ContainerKey) -> Result<(), Error> {
        let ContainerKey { account, id } = container;
        let forget = ForgetContainer { account, container: id };
        Ok(self.reclaim.owners(self.map).tell(forget).await?)
    }
}
