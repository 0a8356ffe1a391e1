//! Shows and changes the partitions of all processes of a cluster, from any of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::host::ClusterIndex;
use super::host::NOBODY;
use crate::index::api::ChangeError;
use crate::index::api::Changed;
use crate::index::api::ChangesOf;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::KnownChanges;
use crate::index::api::PartitionControl;
use crate::index::api::PartitionCounts;
use crate::index::api::PartitionStatus;
use crate::index::api::Plan;
use crate::index::api::Read;
use crate::index::api::ServedPartitions;
use crate::index::api::Target;
use crate::index::load::Counts;
use crate::index::map::FollowedMap;
use crate::index::map::PartitionDescriptor;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;

/// How long a command looks for the process of its partition, which may just have changed.
const FINDS_WITHIN: Duration = Duration::from_secs(2);
/// How long a move waits for the process that opens the partition.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
/// The pause before it is looked again.
const PAUSE: Duration = Duration::from_millis(20);

/// The partitions of a cluster.
#[derive(Debug)]
pub struct ClusterPartitions {
    index: Arc<ClusterIndex>,
    map: Arc<FollowedMap>,
}

impl ClusterPartitions {
    /// The partitions that this map has, as this process reaches them.
    #[must_use]
    pub const fn new(index: Arc<ClusterIndex>, map: Arc<FollowedMap>) -> Self {
        Self { index, map }
    }

    /// The nodes of the processes that serve partitions.
    fn nodes(&self) -> BTreeSet<NodeId> {
        self.index.hosts().iter().map(|claim| claim.holder.node).collect()
    }

    /// The partitions of each process.
    fn each(&self) -> Vec<Arc<dyn PartitionControl>> {
        self.nodes().into_iter().map(|node| self.index.control(node)).collect()
    }

    fn find(&self, partition: PartitionId) -> Result<PartitionDescriptor, ChangeError> {
        self.map.get(partition).ok_or(ChangeError::NoSuchPartition)
    }

    /// Has a partition changed by the process that serves it.
    async fn at_owner(&self, partition: PartitionId, plan: &Plan) -> Result<Changed, ChangeError> {
        let clock = self.index.clock();
        let until = clock.monotonic() + FINDS_WITHIN;
        loop {
            let owner = self.index.control(self.find(partition)?.host.node());
            match owner.change(plan.clone()).await {
                // The map, or its process, is behind.
                Err(ChangeError::NoSuchPartition) if clock.monotonic() < until => {
                    clock.sleep(PAUSE).await;
                }
                made => return made,
            }
        }
    }

    /// Moves a partition, and waits until it is served.
    async fn move_to(&self, partition: PartitionId, to: HostId) -> Result<Changed, ChangeError> {
        if !self.nodes().contains(&to.node()) {
            return Err(ChangeError::NoSuchHost);
        }
        let is_given = self.find(partition)?.host.node() != to.node();
        let moved = self.at_owner(partition, &Plan::Move(partition, to)).await?;
        if !is_given {
            return Ok(moved);
        }
        let given = self.index.clock().monotonic();
        self.wait_until_served(partition, to.node()).await?;
        let waited = self.index.clock().monotonic().saturating_sub(given);
        Ok(Changed { pause: moved.pause + waited, ..moved })
    }

    async fn wait_until_served(&self, id: PartitionId, at: NodeId) -> Result<(), ChangeError> {
        let clock = self.index.clock();
        let until = clock.monotonic() + OPENS_WITHIN;
        loop {
            let target = Target::of(&self.find(id)?);
            if target.host.node() == at
                && self.index.read(target, Read::DeadContainers).await.is_ok()
            {
                return Ok(());
            }
            if clock.monotonic() >= until {
                let why =
                    "the partition was given to the other process, which does not serve it yet";
                return Err(ChangeError::Failed(Error::NoAnswer(why.to_owned())));
            }
            clock.sleep(PAUSE).await;
        }
    }

    /// Merges partitions at the host of the first, which gets those of other processes before.
    async fn merge(&self, partitions: Vec<PartitionId>) -> Result<Changed, ChangeError> {
        let first = *partitions.first().ok_or(ChangeError::NotNeighbours)?;
        let found = partitions.iter().map(|id| self.find(*id)).collect::<Result<Vec<_>, _>>()?;
        // Before anything is moved.
        if PartitionKeys::joined(found.iter().map(|one| &one.keys)).is_none() {
            return Err(ChangeError::NotNeighbours);
        }
        let to = self.find(first)?.host;
        let mut has_moved = false;
        for one in found.iter().filter(|one| one.host.node() != to.node()) {
            let moved = self.move_to(one.id, to).await;
            moved.map_err(|error| if has_moved { error.after_a_move() } else { error })?;
            has_moved = true;
        }
        let merged = self.at_owner(first, &Plan::Merge(partitions)).await;
        merged.map_err(|error| if has_moved { error.after_a_move() } else { error })
    }
}

/// A partition of which no process has shown anything.
fn not_shown(one: &PartitionDescriptor) -> PartitionStatus {
    PartitionStatus {
        id: one.id,
        epoch: one.epoch,
        host: one.host,
        range: one.keys.range().clone(),
        stripe: one.keys.stripe(),
        counts: Counts::default(),
        queue_age: Duration::ZERO,
        rows: 0,
        run_bytes: 0,
        memtable_bytes: 0,
        log_extents: u64::try_from(one.log.len()).unwrap_or(u64::MAX),
        quarantined: false,
        stopped: Some("it is being opened, or its process does not answer".to_owned()),
    }
}

#[async_trait]
impl PartitionControl for ClusterPartitions {
    /// Those of processes that do not answer soon are shown as the map has them.
    async fn served(&self) -> Result<ServedPartitions, Error> {
        let each = self.each();
        let answers = join_all(each.iter().map(|one| one.served())).await;
        let mut hosts: BTreeSet<HostId> =
            self.nodes().into_iter().map(|node| HostId::of(node, 0)).collect();
        let mut found: BTreeMap<PartitionId, PartitionStatus> = BTreeMap::new();
        for answer in answers {
            let Ok(answer) = answer else { continue };
            hosts.extend(answer.hosts);
            for one in answer.partitions {
                if found.get(&one.id).is_none_or(|other| other.epoch < one.epoch) {
                    found.insert(one.id, one);
                }
            }
        }
        for missing in self.map.all(|one| !found.contains_key(&one.id)) {
            let one = missing.descriptor;
            // The map may still have what was divided or merged.
            let is_shown = found.values().any(|other| overlaps(&one.keys, other));
            if !is_shown {
                found.insert(one.id, not_shown(&one));
            }
        }
        let mut partitions: Vec<PartitionStatus> = found.into_values().collect();
        partitions.sort_by(|a, b| (a.range.low(), a.stripe).cmp(&(b.range.low(), b.stripe)));
        Ok(ServedPartitions { hosts: hosts.into_iter().collect(), partitions })
    }

    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error> {
        let each = self.each();
        let answers = join_all(each.iter().map(|one| one.counts())).await;
        let mut all: BTreeMap<PartitionId, PartitionCounts> = BTreeMap::new();
        for one in answers.into_iter().flatten().flatten() {
            // Of a partition that was moved, the process that serves it has the greater number.
            if self.map.get(one.id).is_none_or(|at| at.host.node() == one.host.node()) {
                all.insert(one.id, one);
            }
        }
        Ok(all.into_values().collect())
    }

    /// Those of processes that do not answer soon come later.
    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error> {
        let each = self.each();
        let answers = join_all(each.iter().map(|one| one.changes(known))).await;
        Ok(answers.into_iter().flatten().flatten().collect())
    }

    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let owner = self.find(partition)?.host.node();
        self.index.control(owner).even_cuts(partition, parts).await
    }

    async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let each = self.each();
        let answers = join_all(each.iter().map(|one| one.row_spread(range, parts))).await;
        let mut all: Vec<(RoutingKey, u64)> =
            answers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        match plan {
            Plan::Move(partition, to) => self.move_to(partition, to).await,
            Plan::Merge(partitions) => self.merge(partitions).await,
            Plan::Split(id, _) | Plan::SplitEvenly(id, _) | Plan::Stripe(id, ..) => {
                self.at_owner(id, &plan).await
            }
        }
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        if !self.nodes().contains(&target.host.node()) {
            return Err(Error::NoAnswer(NOBODY.to_owned()));
        }
        self.index.control(target.host.node()).give(target, to).await
    }

    fn node_name(&self, node: NodeId) -> Option<String> {
        self.index.node_name(node)
    }
}

/// Whether a partition that is shown has some of these keys.
fn overlaps(keys: &PartitionKeys, shown: &PartitionStatus) -> bool {
    let of_shown = match shown.stripe {
        Some(stripe) => PartitionKeys::striped(shown.range.clone(), stripe),
        None => shown.range.clone().into(),
    };
    keys.overlaps(&of_shown)
}
