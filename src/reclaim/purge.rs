//! Removes the rows of deleted containers.
//!
//! A write that passed its check for the container before the deletion may land after it, and after the first pass. So a
//! container is remembered for an hour after the pass that found its end, and until the bodies that were on their way then
//! have arrived, however slowly; purged once more, and only then forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::api::purge_key;
use crate::reclaim::Error;
use crate::reclaim::partitions::target;
use crate::reclaim::service::Reclaim;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::RoutingKey;

type Dead = (AccountId, ContainerId);

/// Which deleted containers were purged once. Lost at a restart, which only makes the wait start again.
#[derive(Debug, Default)]
pub(super) struct Purged(BTreeMap<Dead, Once>);

/// When that was.
#[derive(Clone, Copy, Debug)]
struct Once {
    /// By the monotonic clock.
    at: Duration,
    /// Among the running writes.
    mark: u64,
}

/// Purges deleted containers, a bounded part. Whether there was anything to do.
pub(super) async fn purge(
    reclaim: &Reclaim,
    map: &PartitionMap,
    purged: &mut Purged,
) -> Result<bool, Error> {
    let mut writes = reclaim.config.writes_per_pass;
    let dead = dead_containers(reclaim, map).await?;
    purged.0.retain(|container, _| dead.contains(container));
    for container in dead {
        let since = purged.0.get(&container).copied();
        let now = reclaim.env.clock.monotonic();
        let waits = |once: Once| {
            now.saturating_sub(once.at) < reclaim.config.purge_again_after
                || reclaim.inflight.is_writing(once.mark)
        };
        if since.is_some_and(waits) {
            continue;
        }
        if !remove_rows(reclaim, map, container, &mut writes).await? {
            return Ok(true);
        }
        if since.is_some() {
            forget(reclaim, map, container).await?;
            purged.0.remove(&container);
            reclaim.metrics.purged_containers.inc();
        } else {
            let at = reclaim.env.clock.monotonic();
            purged.0.insert(container, Once { at, mark: reclaim.inflight.write_mark() });
        }
    }
    Ok(writes < reclaim.config.writes_per_pass)
}

async fn dead_containers(reclaim: &Reclaim, map: &PartitionMap) -> Result<Vec<Dead>, Error> {
    let mut all = Vec::new();
    for partition in map.partitions() {
        let reply = reclaim.host.read(target(partition), Read::DeadContainers).await?;
        let ReadReply::DeadContainers(dead) = reply else { return Err(Error::Answer) };
        all.extend(dead.into_iter().map(|(account, container, _)| (account, container)));
    }
    Ok(all)
}

/// Removes rows of a container in all partitions it touches; false when `writes` ran out before its end.
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
