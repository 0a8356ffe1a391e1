//! Shows and changes the partitions of all processes of a cluster, from any of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::host::ClusterIndex;
use super::remote_partitions::RemotePartitions;
use crate::coordinator::Follows;
use crate::env::Tasks;
use crate::index::api::CHILDREN_MAX;
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
/// How often a merge gathers its partitions, which the manager may move meanwhile.
const GATHERS: usize = 3;

/// The partitions of a cluster.
#[derive(Debug)]
pub struct ClusterPartitions {
    cluster: Arc<Cluster>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Cluster {
    index: Arc<ClusterIndex>,
    map: Arc<FollowedMap>,
    /// What each process said last.
    said: Mutex<BTreeMap<NodeId, Said>>,
}

/// What a process said last. It is shown while the process does not answer: a rate is the
/// difference of two counts.
#[derive(Clone, Debug, Default)]
struct Said {
    served: Option<ServedPartitions>,
    counts: Vec<PartitionCounts>,
}

impl ClusterPartitions {
    /// The partitions that this map has, as this process reaches them. Changes run in these tasks.
    #[must_use]
    pub fn new(index: Arc<ClusterIndex>, map: Arc<FollowedMap>, tasks: Tasks) -> Self {
        let said = Mutex::default();
        Self { cluster: Arc::new(Cluster { index, map, said }), tasks }
    }
}

impl Cluster {
    /// The nodes of the processes that serve partitions.
    fn nodes(&self) -> BTreeSet<NodeId> {
        self.index.hosts().iter().map(|claim| claim.holder.node).collect()
    }

    /// Shows and changes the partitions of the process of a node.
    fn control(&self, node: NodeId) -> Arc<dyn PartitionControl> {
        self.index
            .own_control(node)
            .unwrap_or_else(|| Arc::new(RemotePartitions::new(Arc::clone(&self.index), node)))
    }

    /// The partitions of each process.
    fn each(&self) -> BTreeMap<NodeId, Arc<dyn PartitionControl>> {
        self.nodes().into_iter().map(|node| (node, self.control(node))).collect()
    }

    /// Notes what a process says, or returns what it said last.
    fn said<T>(&self, node: NodeId, note: impl FnOnce(&mut Said) -> T) -> T {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        note(said.entry(node).or_default())
    }

    async fn served_by(&self, node: &NodeId, one: &Arc<dyn PartitionControl>) -> ServedPartitions {
        let answer = one.served().await.ok();
        self.said(*node, |said| match answer {
            Some(answer) => said.served.insert(answer).clone(),
            None => {
                let mut before = said.served.clone().unwrap_or_default();
                silent(&mut before);
                before
            }
        })
    }

    async fn counts_of(
        &self,
        node: &NodeId,
        one: &Arc<dyn PartitionControl>,
    ) -> Vec<PartitionCounts> {
        let answer = one.counts().await;
        self.said(*node, |said| {
            if let Ok(answer) = answer {
                said.counts = answer;
            }
            said.counts.clone()
        })
    }

    /// The descriptor of a partition. The map of this process may be behind the one that has made
    /// it.
    async fn find(&self, partition: PartitionId) -> Result<PartitionDescriptor, ChangeError> {
        let found = async {
            loop {
                let seen = self.map.revision();
                if let Some(found) = self.map.get(partition) {
                    return found;
                }
                self.map.changed_after(seen).await;
            }
        };
        tokio::select! {
            biased;
            found = found => Ok(found),
            () = self.index.clock().sleep(FINDS_WITHIN) => Err(ChangeError::NoSuchPartition),
        }
    }

    /// Asks the process that serves a partition.
    async fn at_owner<T, F>(
        &self,
        partition: PartitionId,
        ask: impl Fn(Arc<dyn PartitionControl>) -> F + Send,
    ) -> Result<T, ChangeError>
    where
        F: Future<Output = Result<T, ChangeError>> + Send,
    {
        let clock = self.index.clock();
        let until = clock.monotonic() + FINDS_WITHIN;
        loop {
            let owner = self.control(self.find(partition).await?.host.node());
            match ask(owner).await {
                // The map or that process is behind, or it does not serve yet. Nothing was done.
                Err(ChangeError::NoSuchPartition | ChangeError::Refused(Error::NoAnswer(_)))
                    if clock.monotonic() < until =>
                {
                    clock.sleep(PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    async fn change_at_owner(&self, id: PartitionId, plan: &Plan) -> Result<Changed, ChangeError> {
        let ask = |owner: Arc<dyn PartitionControl>| {
            let plan = plan.clone();
            async move { owner.change(plan).await }
        };
        self.at_owner(id, ask).await
    }

    /// Moves a partition, and waits until it is served.
    async fn move_to(&self, partition: PartitionId, to: HostId) -> Result<Changed, ChangeError> {
        if !self.nodes().contains(&to.node()) {
            return Err(ChangeError::NoSuchHost);
        }
        let is_given = self.find(partition).await?.host.node() != to.node();
        let plan = Plan::Move(partition, to);
        let moved = self.change_at_owner(partition, &plan).await?;
        if !is_given {
            return Ok(moved);
        }
        let given = self.index.clock().monotonic();
        self.wait_until_served(partition, to.node()).await?;
        let waited = self.index.clock().monotonic().saturating_sub(given);
        let moved = Changed { pause: moved.pause + waited, ..moved };
        // The process has opened it on any of its hosts.
        match self.control(to.node()).change(plan).await {
            Ok(_) => Ok(moved),
            // It has been moved or divided since, or is.
            Err(error @ (ChangeError::NoSuchPartition | ChangeError::Busy(_))) => {
                tracing::info!(%partition, host = %to, %error, "it is on another host of that node");
                Ok(moved)
            }
            Err(error) => Err(error.after_a_move()),
        }
    }

    async fn wait_until_served(&self, id: PartitionId, at: NodeId) -> Result<(), ChangeError> {
        let clock = self.index.clock();
        let until = clock.monotonic() + OPENS_WITHIN;
        loop {
            let Some(found) = self.map.get(id) else {
                // Its process has divided or merged it since.
                return Ok(());
            };
            let target = Target::of(&found);
            let is_there = target.host.node() == at;
            if is_there && self.index.read(target, Read::DeadContainers).await.is_ok() {
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
        let mut has_moved = false;
        let mut gathers = 1;
        loop {
            let merged = self.gather_and_merge(first, &partitions, &mut has_moved).await;
            match merged {
                // The manager has moved some of them meanwhile.
                Err(ChangeError::NoSuchPartition) if has_moved && gathers < GATHERS => gathers += 1,
                Err(error) if has_moved => return Err(error.after_a_move()),
                merged => return merged,
            }
        }
    }

    async fn gather_and_merge(
        &self,
        first: PartitionId,
        partitions: &[PartitionId],
        has_moved: &mut bool,
    ) -> Result<Changed, ChangeError> {
        let mut found = Vec::new();
        for partition in partitions {
            found.push(self.find(*partition).await?);
        }
        // Before anything is moved.
        let joined = PartitionKeys::joined(found.iter().map(|one| &one.keys));
        if joined.is_none() || found.len() > CHILDREN_MAX {
            return Err(ChangeError::NotNeighbours);
        }
        let to = self.find(first).await?.host;
        for one in found.iter().filter(|one| one.host.node() != to.node()) {
            self.move_to(one.id, to).await?;
            *has_moved = true;
        }
        self.change_at_owner(first, &Plan::Merge(partitions.to_vec())).await
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        match plan {
            Plan::Move(partition, to) => self.move_to(partition, to).await,
            Plan::Merge(partitions) => self.merge(partitions).await,
            Plan::Split(id, _) | Plan::SplitEvenly(id, _) | Plan::Stripe(id, ..) => {
                self.change_at_owner(id, &plan).await
            }
        }
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

/// What a process said last, while it does not answer.
fn silent(served: &mut ServedPartitions) {
    for one in &mut served.partitions {
        one.stopped.get_or_insert_with(|| "its process does not answer".to_owned());
    }
}

#[async_trait]
impl PartitionControl for ClusterPartitions {
    /// Those of processes that do not answer soon are shown as they were, or as the map has them.
    async fn served(&self) -> Result<ServedPartitions, Error> {
        let Cluster { map, .. } = &*self.cluster;
        let each = self.cluster.each();
        let ask = |(node, one)| self.cluster.served_by(node, one);
        let answers = join_all(each.iter().map(ask)).await;
        let mut hosts: BTreeSet<HostId> = each.keys().map(|node| HostId::of(*node, 0)).collect();
        let mut found: BTreeMap<PartitionId, PartitionStatus> = BTreeMap::new();
        for answer in answers {
            hosts.extend(answer.hosts);
            for one in answer.partitions {
                if found.get(&one.id).is_none_or(|other| other.epoch < one.epoch) {
                    found.insert(one.id, one);
                }
            }
        }
        // The map may still have what was divided or merged.
        let missing = map.all(|one| !found.contains_key(&one.id));
        let mut partitions: Vec<PartitionStatus> = found.into_values().collect();
        in_key_order(&mut partitions);
        let missing = missing.iter().map(|missing| &missing.descriptor);
        let not_there: Vec<PartitionStatus> =
            missing.filter(|one| !is_shown(&one.keys, &partitions)).map(not_shown).collect();
        partitions.extend(not_there);
        in_key_order(&mut partitions);
        Ok(ServedPartitions { hosts: hosts.into_iter().collect(), partitions })
    }

    /// Of processes that do not answer soon, what they said last.
    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error> {
        let each = self.cluster.each();
        let ask = |(node, one)| self.cluster.counts_of(node, one);
        let answers = join_all(each.iter().map(ask)).await;
        let mut all: BTreeMap<PartitionId, PartitionCounts> = BTreeMap::new();
        for one in answers.into_iter().flatten() {
            // Of a partition that was moved, the process that the map names.
            let is_there = |at: PartitionDescriptor| at.host.node() == one.host.node();
            if self.cluster.map.get(one.id).is_none_or(is_there) {
                all.insert(one.id, one);
            }
        }
        Ok(all.into_values().collect())
    }

    /// Those of processes that do not answer soon come later.
    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error> {
        let each = self.cluster.each();
        let answers = join_all(each.values().map(|one| one.changes(known))).await;
        Ok(answers.into_iter().flatten().flatten().collect())
    }

    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let ask = |owner: Arc<dyn PartitionControl>| async move {
            owner.even_cuts(partition, parts).await
        };
        self.cluster.at_owner(partition, ask).await
    }

    async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let Cluster { map, .. } = &*self.cluster;
        let of_range = map.all(|one| one.keys.range().intersect(range).is_some());
        let nodes: BTreeSet<NodeId> =
            of_range.iter().map(|found| found.descriptor.host.node()).collect();
        let owners: Vec<_> = nodes.into_iter().map(|node| self.cluster.control(node)).collect();
        let answers = join_all(owners.iter().map(|one| one.row_spread(range, parts))).await;
        let mut all: Vec<(RoutingKey, u64)> =
            answers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        // In a task, because a merge whose caller goes would leave its partitions moved.
        let cluster = Arc::clone(&self.cluster);
        let changing = async move { cluster.change(plan).await };
        let done = self.tasks.spawn("change of partitions", changing).await;
        let lost = || Error::Unavailable("the task of a change ended early".to_owned());
        done.unwrap_or_else(|_| Err(ChangeError::Failed(lost())))
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        if !self.cluster.nodes().contains(&target.host.node()) {
            return Err(Error::Overloaded);
        }
        self.cluster.control(target.host.node()).give(target, to).await
    }

    fn node_name(&self, node: NodeId) -> Option<String> {
        self.cluster.index.node_name(node)
    }
}

fn in_key_order(partitions: &mut [PartitionStatus]) {
    partitions.sort_by(|a, b| (a.range.low(), a.stripe).cmp(&(b.range.low(), b.stripe)));
}

/// Whether one of these partitions, in key order, has some of these keys.
fn is_shown(keys: &PartitionKeys, shown: &[PartitionStatus]) -> bool {
    let high = keys.range().high();
    let end = shown.partition_point(|one| high.is_none_or(|high| one.range.low() < high));
    let overlaps = |one: &PartitionStatus| {
        let of_shown = match one.stripe {
            Some(stripe) => PartitionKeys::striped(one.range.clone(), stripe),
            None => one.range.clone().into(),
        };
        keys.overlaps(&of_shown)
    };
    // Those before end below these keys.
    let is_below =
        |one: &PartitionStatus| one.range.high().is_some_and(|end| end <= keys.range().low());
    shown.get(..end).unwrap_or_default().iter().rev().take_while(|one| !is_below(one)).any(overlaps)
}
