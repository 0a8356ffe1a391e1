//! Removes the rows of deleted containers.
//!
//! A request that found the container before the deletion may commit after it, and after the first
//! purge. So a container is remembered until all such requests and their commits have ended,
//! however slowly their bodies arrive (`index/inflight/changes.rs`). Then it is purged once more
//! and forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::InFlight;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::api::purge_key;
use crate::index::inflight::ChangeMark;
use crate::reclaim::error::Error;
use crate::reclaim::partitions::target;
use crate::reclaim::state::Reclaim;
use crate::reclaim::walk;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::RoutingKey;

type Dead = (AccountId, ContainerId);

/// Which deleted containers were purged once. Lost at a restart, which only makes the wait start
/// again.
#[derive(Debug, Default)]
pub(super) struct Purged(BTreeMap<Dead, Once>);

/// When that was.
#[derive(Clone, Copy, Debug)]
struct Once {
    /// By the monotonic clock.
    at: Duration,
    /// Requests from before it may have found the container.
    requests: ChangeMark,
    /// Commits from before it may be theirs; taken when the last of them had ended.
    commits: Option<ChangeMark>,
}

impl Once {
    /// Whether rows may still come.
    fn may_grow(&mut self, inflight: &InFlight) -> bool {
        if self.commits.is_none() && !inflight.is_changing(self.requests) {
            self.commits = Some(inflight.change_mark());
        }
        self.commits.is_none_or(|commits| inflight.is_committing(commits))
    }
}

/// Purges deleted containers, a bounded part. Whether there was anything to do. One that a failing
/// partition keeps from being purged does not stop the others.
pub(super) async fn purge(
    reclaim: &Reclaim,
    map: &PartitionMap,
    purged: &mut Purged,
) -> Result<bool, Error> {
    let mut writes = reclaim.config.writes_per_pass;
    let dead = dead_containers(reclaim, map).await?;
    purged.0.retain(|container, _| dead.contains(container));
    for container in dead {
        match purge_one(reclaim, map, (container, purged), &mut writes).await {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            Err(error) => reclaim.pass_over("purge", error)?,
        }
    }
    Ok(writes < reclaim.config.writes_per_pass)
}

/// Purges one deleted container if it is time; false when `writes` ran out before its end.
async fn purge_one(
    reclaim: &Reclaim,
    map: &PartitionMap,
    (container, purged): (Dead, &mut Purged),
    writes: &mut usize,
) -> Result<bool, Error> {
    let now = reclaim.env.clock.monotonic();
    let again = match purged.0.get_mut(&container) {
        Some(once) => {
            let young = now.saturating_sub(once.at) < reclaim.config.purge_again_after;
            if once.may_grow(&reclaim.inflight) || young {
                return Ok(true);
            }
            // A commit that was answered as unknown is decided once its partition commits again.
            let range = RoutingKey::container_range(container.0, container.1);
            walk::prove_in(reclaim, map, &range).await?;
            true
        }
        None => false,
    };
    if !remove_rows(reclaim, map, container, writes).await? {
        return Ok(false);
    }
    if again {
        forget(reclaim, map, container).await?;
        purged.0.remove(&container);
        reclaim.metrics.purged_containers.inc();
    } else {
        let at = reclaim.env.clock.monotonic();
        let requests = reclaim.inflight.change_mark();
        purged.0.insert(container, Once { at, requests, commits: None });
    }
    Ok(true)
}

async fn dead_containers(reclaim: &Reclaim, map: &PartitionMap) -> Result<Vec<Dead>, Error> {
    let mut all = Vec::new();
    for partition in map.partitions() {
        let reply = match reclaim.host.read(target(partition), Read::DeadContainers).await {
            Ok(reply) => reply,
            Err(error) => {
                reclaim.pass_over("deleted containers", error.into())?;
                continue;
            }
        };
        let ReadReply::DeadContainers(dead) = reply else { return Err(Error::Answer) };
        all.extend(dead.into_iter().map(|(account, container, _)| (account, container)));
    }
    Ok(all)
}

/// Removes rows of a container in all partitions it touches; false when `writes` ran out before its
/// end.
async fn remove_rows(
    reclaim: &Reclaim,
    map: &PartitionMap,
    (account, container): Dead,
    writes: &mut usize,
) -> Result<bool, Error> {
    let range = RoutingKey::container_range(account, container);
    for partition in map.partitions() {
        let Some(part) = range.intersect(partition.keys.range()) else { continue };
        let mut from = Some(part.low().as_bytes().clone());
        while let Some(start) = from {
            reclaim.go_on()?;
            let Some(left) = writes.checked_sub(1) else { return Ok(false) };
            *writes = left;
            let limit = reclaim.config.blobs_per_write;
            let purge = Write::PurgeContainer { account, container, from: start, limit };
            let reply = reclaim.host.write(target(partition), purge).await?;
            let WriteReply::Purged { next } = reply else { return Err(Error::Answer) };
            from = next;
            reclaim.metrics.purge_writes.inc();
        }
    }
    Ok(true)
}

async fn forget(
    reclaim: &Reclaim,
    map: &PartitionMap,
    (account, container): Dead,
) -> Result<(), Error> {
    let key = purge_key(account, container);
    let owner = map.owner(&key).ok_or(crate::index::Error::WrongPartition)?;
    let forget = Write::ForgetContainer { account, container };
    reclaim.host.write(target(owner), forget).await?;
    Ok(())
}
