//! The partition map of a new store.

use std::ops::Range;

use crate::coordinator::{Compare, Coordinator, Op, TxnReply};
use crate::index::api::Error;
use crate::index::map::PARTITION_PREFIX;
use crate::index::map::PartitionDescriptor;
use crate::index::map::PartitionMap;
use crate::types::AccountId;
use crate::types::ClusterNumber;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// The most changes of a coordinator transaction.
const PARTITIONS_MAX: u64 = 128;

/// The ids that the partitions of a store's first map can have. The counter does not know of them.
pub(super) fn first_map_ids(cluster: ClusterNumber) -> Range<u64> {
    let first = cluster.ids().start;
    first..first + PARTITIONS_MAX
}

/// Bounds that cut the containers of the cluster's first account into `count` equal ranges of ids.
pub(super) fn even_boundaries(cluster: ClusterNumber, count: u64) -> Vec<RoutingKey> {
    let (account, count) = (AccountId::new(cluster.ids().start), count.max(1));
    let bound = |number: u64| {
        let id = (u128::from(number) << 64) / u128::from(count);
        let container = ContainerId::new(u64::try_from(id).expect("number is below count"));
        let key = RoutingKey::prefix(account, container, "", Collation::Utf8);
        RoutingKey::from_bytes(key)
    };
    (1..count).map(bound).collect()
}

/// Writes the first map of a cluster, if there is none: `count` partitions, one after the other to
/// each of these hosts.
///
/// # Errors
/// [`Error::Unavailable`], also without a host.
pub async fn create_map(
    coordinator: &dyn Coordinator,
    cluster: ClusterNumber,
    (hosts, count): (&[HostId], u64),
) -> Result<(), Error> {
    if hosts.is_empty() {
        return Err(Error::Unavailable("no process takes partitions".into()));
    }
    create(coordinator, (cluster, hosts), &even_boundaries(cluster, count)).await
}

/// Writes the first map, if there is none, in one transaction (I5).
pub(super) async fn create(
    coordinator: &dyn Coordinator,
    (cluster, hosts): (ClusterNumber, &[HostId]),
    boundaries: &[RoutingKey],
) -> Result<(), Error> {
    let unavailable = |error: crate::coordinator::Error| Error::Unavailable(error.to_string());
    let found = coordinator.range(PARTITION_PREFIX.as_bytes()).await.map_err(unavailable)?;
    if !found.entries.is_empty() {
        return Ok(());
    }
    let descriptors = descriptors(cluster, hosts, boundaries);
    let count = u64::try_from(descriptors.len()).unwrap_or(u64::MAX);
    if count > PARTITIONS_MAX || PartitionMap::new(descriptors.clone()).is_none() {
        return Err(Error::Unavailable("the initial partitions do not make a map".into()));
    }
    let keys = descriptors.iter().map(|d| PartitionDescriptor::coordinator_key(d.id));
    // Every first map has this partition. A condition for each would be too many for a transaction.
    let when: Vec<_> = keys.clone().take(1).map(Compare::Absent).collect();
    let then: Vec<_> =
        keys.zip(&descriptors).map(|(key, descriptor)| Op::Put(key, descriptor.encode())).collect();
    match coordinator.txn(&when, &then).await.map_err(unavailable)? {
        TxnReply::Committed(_) => {
            tracing::info!(partitions = descriptors.len(), "new store: partition map created");
            Ok(())
        }
        // Another process was faster: its map counts.
        TxnReply::Rejected(_) => Ok(()),
    }
}

fn descriptors(
    cluster: ClusterNumber,
    hosts: &[HostId],
    boundaries: &[RoutingKey],
) -> Vec<PartitionDescriptor> {
    let lows = std::iter::once(RoutingKey::min()).chain(boundaries.iter().cloned());
    let highs = boundaries.iter().cloned().map(Some).chain([None]);
    (cluster.ids().start..)
        .zip(hosts.iter().cycle())
        .zip(lows.zip(highs))
        .map(|((id, host), (low, high))| PartitionDescriptor {
            id: PartitionId::new(id),
            keys: KeyRange::new(low, high).into(),
            epoch: Epoch::new(0),
            log: Vec::new(),
            host: *host,
        })
        .collect()
}
