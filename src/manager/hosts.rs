//! Says which process of a cluster serves which partition, by naming its host in the descriptors.
//! One process manages at a time; it changes descriptors only while it has the claim to do so.
//!
//! 1. A process that serves partitions has a claim of its own (`coordinator/hosts.rs`). If it is
//!    gone, its claim is removed: then it changes no descriptor any more.
//! 2. Partitions of a process without a claim are given to others. Those open them from their logs.
//! 3. `placement.rs`: who gets what. A process that has many more than another one, or much more
//!    load (`loads.rs`), is asked to give some away.
//! 4. A process that does not open what it got loses it again, and gets nothing for a while: it may
//!    reach the coordinator and not the nodes with copies.

mod loads;
mod placement;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::audit_log::AuditLog;
use crate::coordinator::Compare;
use crate::coordinator::Coordinator;
use crate::coordinator::Follows;
use crate::coordinator::Op;
use crate::coordinator::Revision;
use crate::coordinator::TxnReply;
use crate::coordinator::claim::WatchHolder;
use crate::coordinator::hosts::HostClaim;
use crate::coordinator::hosts::HostClaims;
use crate::coordinator::hosts::host_claim;
use crate::env::Clock;
use crate::index;
use crate::index::FollowedMap;
use crate::index::Found;
use crate::index::PartitionCounts;
use crate::index::PartitionDescriptor;
use crate::index::Target;
use crate::index::create_map;
use crate::manager::PolicyConfig;
use crate::manager::audit_line;
use crate::manager::hosts::loads::Loads;
use crate::manager::hosts::placement::Hosts;
use crate::manager::hosts::placement::Placed;
use crate::types::ClusterNumber;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;

/// How often it is looked without a change.
const LOOK: Duration = Duration::from_secs(1);
/// How long after its start a manager waits for a process whose claim it has never seen. After a
/// power cut all come back at about the same time.
const RETURN: Duration = Duration::from_secs(3);
/// A claim of a node is removed at most once in this time: if the node is not gone, it serves
/// nothing for a moment.
const REMOVES_EVERY: Duration = Duration::from_secs(10);
/// Claims of different nodes are removed by so much later one after the other: if this process
/// reaches nobody, not all others end.
const REMOVES_APART: Duration = Duration::from_secs(3);
/// A process has so much time to open one of the partitions that it got.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
/// A new manager gives the processes so much longer: after a power cut all open everything.
const OPENS_AT_FIRST: Duration = Duration::from_secs(50);
/// How long it is waited for the answer whether a partition is served.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
/// How many partitions are asked for at a time.
const ASKED_AT_ONCE: usize = 128;
/// One that has not gets nothing for so long.
const AVOIDED_FOR: Duration = Duration::from_secs(60);
/// How often a partition is moved from one process to another.
const MOVES_EVERY: Duration = Duration::from_secs(1);
/// A partition that was moved stays for so long.
const STAYS: Duration = Duration::from_secs(30);
/// Partitions that one transaction gives out. Each has two conditions at most.
const TOGETHER: usize = 48;

/// Moves partitions between processes that serve them.
#[async_trait]
pub trait MovesPartitions: Send + Sync + Debug {
    /// Whether a node takes partitions: it is there, and is not drained.
    fn takes(&self, node: NodeId) -> bool;

    /// Asks a process for a partition at this epoch. It answers [`index::Error::Corrupt`] too if it
    /// has often failed to reach its files.
    ///
    /// # Errors
    /// [`index::Error`]: it does not serve the partition.
    async fn asked(&self, target: Target) -> Result<(), index::Error>;

    /// Has the process that serves a partition give it to a host of another one.
    ///
    /// # Errors
    /// [`index::Error`]; the partition may have been given.
    async fn give(&self, target: Target, to: HostId) -> Result<(), index::Error>;

    /// How many requests each partition has had. Those of processes that do not answer are missing.
    async fn counts(&self) -> Vec<PartitionCounts>;
}

/// What the manager of hosts works with.
#[derive(Debug)]
pub struct HostManager {
    /// Changes descriptors while this process may.
    pub coordinator: Arc<dyn Coordinator>,
    /// The cluster.
    pub cluster: ClusterNumber,
    /// How many partitions a new cluster gets.
    pub initial_partitions: u64,
    /// The descriptors.
    pub map: Arc<FollowedMap>,
    /// Which processes serve.
    pub claims: Arc<HostClaims>,
    /// Tells whether a process is gone.
    pub watch: Arc<dyn WatchHolder>,
    /// Moves partitions.
    pub moves: Arc<dyn MovesPartitions>,
    /// What a hot partition is; `None` if load moves none.
    pub policy: Option<PolicyConfig>,
    /// Gets a line for each move.
    pub audit_log: AuditLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What a run remembers.
#[derive(Debug, Default)]
struct Known {
    /// When the claim of a node was removed.
    removed: BTreeMap<NodeId, Duration>,
    /// When a partition was moved, by this manager or at the command of an operator.
    moved: BTreeMap<PartitionId, Duration>,
    /// Where each partition was last.
    at: BTreeMap<PartitionId, NodeId>,
    /// When a partition was moved last.
    last_move: Option<Duration>,
    /// The partitions that were given and are not known to be served yet.
    opening: BTreeMap<PartitionId, Opening>,
    /// When a node did not open what it got.
    avoided: BTreeMap<NodeId, Duration>,
    /// The partitions that were taken back from a process which did not open them. If the next one
    /// does not either, the reason is the partition.
    taken_back: BTreeSet<PartitionId>,
    /// When it was asked last which partitions are served.
    asked: Option<Duration>,
    /// Those up to this one were asked for last.
    asked_to: Option<PartitionId>,
    /// The load of the partitions.
    loads: Loads,
}

/// A partition that was given to a process.
#[derive(Clone, Copy, Debug)]
struct Opening {
    at: NodeId,
    /// When it was given, or when the process last opened another one.
    since: Duration,
    /// The revision before.
    before: Revision,
}

impl HostManager {
    /// Manages for ever.
    ///
    /// Cancel safe: another one goes on.
    pub async fn run(&self) {
        let began = self.clock.monotonic();
        let mut known = Known::default();
        // The one before may have given them away a moment ago.
        for found in self.map.all(|_| true) {
            let opening = Opening::found(&found, began + OPENS_AT_FIRST);
            known.opening.insert(found.descriptor.id, opening);
        }
        let mut watched: BTreeSet<NodeId> = BTreeSet::new();
        let mut gone = FuturesUnordered::new();
        let mut giving = FuturesUnordered::new();
        let mut counting = FuturesUnordered::new();
        loop {
            let seen = self.map.revision();
            let claims = self.claims.all();
            for claim in &claims {
                let node = claim.holder.node;
                if watched.insert(node) {
                    gone.push(self.is_gone(*claim, known.removes_from(node)));
                }
            }
            self.note_moves(&mut known);
            let may_return = self.clock.monotonic() < began + RETURN;
            self.follow_opening(&claims, &mut known).await;
            if let Err(error) = self.give_out(&claims, may_return, &mut known).await {
                tracing::warn!(%error, "partitions are not given out yet");
            }
            if self.policy.is_some()
                && counting.is_empty()
                && known.loads.is_due(self.clock.monotonic())
            {
                counting.push(self.moves.counts());
            }
            if giving.is_empty()
                && known.opening.is_empty()
                && let Some(placed) = self.due_move(&claims, &mut known)
            {
                giving.push(self.give(placed));
            }
            tokio::select! {
                biased;
                Some((claim, is_gone)) = gone.next(), if !gone.is_empty() => {
                    watched.remove(&claim.holder.node);
                    // Another one may have been removed meanwhile.
                    let now = self.clock.monotonic();
                    if is_gone && now >= known.removes_from(claim.holder.node) {
                        self.remove(claim, &mut known).await;
                    }
                }
                Some(given) = giving.next(), if !giving.is_empty() => {
                    if let Some(placed) = given {
                        known.note_given(&placed, self.clock.monotonic());
                    }
                }
                Some(counts) = counting.next(), if !counting.is_empty() => {
                    let policy = self.policy.unwrap_or_default();
                    let now = self.clock.monotonic();
                    known.loads.note(now, (counts, &policy), |id| self.map.find(id).is_some());
                }
                () = self.map.changed_after(seen) => {}
                () = self.claims.changed_from(&claims) => {}
                () = self.clock.sleep(LOOK) => {}
            }
        }
    }

    /// Notes which partitions are elsewhere than the last time, but for those that this manager
    /// has given out. An operator has moved them, and they may not be served there.
    fn note_moves(&self, known: &mut Known) {
        let now = self.clock.monotonic();
        for (id, before) in std::mem::replace(&mut known.at, self.map.nodes()) {
            let moved = known.at.get(&id).filter(|node| **node != before);
            let Some((at, found)) = moved.copied().zip(self.map.find(id)) else { continue };
            if known.opening.get(&id).is_some_and(|opening| opening.at == at) {
                continue;
            }
            known.moved.insert(id, now);
            known.opening.insert(id, Opening::found(&found, now));
        }
    }

    fn hosts(&self, claims: &[HostClaim], known: &Known) -> Hosts {
        let mut hosts = Hosts::default();
        for node in claims.iter().map(|claim| claim.holder.node) {
            let of = if !self.moves.takes(node) {
                &mut hosts.leaving
            } else if known.avoided.contains_key(&node) {
                &mut hosts.keeping
            } else {
                &mut hosts.taking
            };
            of.insert(node);
        }
        hosts
    }

    /// Asks which partitions are served that were given, and takes those away from processes that
    /// have opened none in time.
    async fn follow_opening(&self, claims: &[HostClaim], known: &mut Known) {
        let now = self.clock.monotonic();
        known.avoided.retain(|_, since| now < *since + AVOIDED_FOR);
        if known.opening.is_empty() || known.asked.is_some_and(|last| now < last + LOOK) {
            return;
        }
        known.asked = Some(now);
        let is_elsewhere = |id: &PartitionId, opening: &Opening| {
            self.map.find(*id).is_none_or(|found| {
                found.revision > opening.before && found.descriptor.host.node() != opening.at
            })
        };
        known.opening.retain(|id, opening| !is_elsewhere(id, opening));
        let asked = known.next_asked();
        let taken_back = &known.taken_back;
        let ask = |(id, opening): &(PartitionId, Opening)| self.serves(*id, *opening, taken_back);
        let served: Vec<bool> = join_all(asked.iter().map(ask)).await;
        for ((id, Opening { at, .. }), _) in
            asked.iter().zip(&served).filter(|(_, served)| **served)
        {
            known.opening.remove(id);
            known.taken_back.remove(id);
            let others = known.opening.values_mut().filter(|other| other.at == *at);
            others.for_each(|other| other.since = other.since.max(now));
        }
        // Those that were not asked for now may have been opened since.
        let mut late: BTreeMap<PartitionId, NodeId> = BTreeMap::new();
        for (id, _) in asked {
            let is_late = |one: &Opening| now >= one.since + OPENS_WITHIN;
            if let Some(one) = known.opening.get(&id).copied().filter(is_late) {
                known.opening.remove(&id);
                late.insert(id, one.at);
            }
        }
        known.taken_back.retain(|id| self.map.find(*id).is_some());
        let is_first = |id: &PartitionId| !known.taken_back.contains(id);
        let (first, again): (BTreeMap<_, _>, BTreeMap<_, _>) =
            late.into_iter().partition(|(id, _)| is_first(id));
        for (partition, node) in again {
            tracing::error!(%partition, %node, "two processes did not open it: it stays there");
        }
        if first.is_empty() {
            return;
        }
        let before = known.avoided.clone();
        for node in first.values() {
            known.avoided.entry(*node).or_insert(now);
        }
        let map = self.map.all(|_| true);
        let placed = self.hosts(claims, known).take_back(&map, |id| first.contains_key(&id));
        if placed.is_empty() {
            // There is no other process that takes them.
            known.avoided = before;
        }
        for some in placed.chunks(TOGETHER) {
            let nodes: BTreeSet<u64> = first.values().map(|node| node.get()).collect();
            tracing::warn!(?nodes, "they did not open what they got, and get no more for a while");
            known.taken_back.extend(some.iter().map(|one| one.partition.descriptor.id));
            // Their processes live. They are fenced like any others.
            self.name(some, &[], known).await;
        }
    }

    /// Whether a partition is served where it was given to. Damaged files are no reason to give it
    /// to others, once another process has said that they are damaged.
    async fn serves(
        &self,
        id: PartitionId,
        opening: Opening,
        taken_back: &BTreeSet<PartitionId>,
    ) -> bool {
        let found = self.map.find(id).filter(|found| found.revision > opening.before);
        let Some(found) = found else { return false };
        let answer = tokio::select! {
            biased;
            answer = self.moves.asked(Target::of(&found.descriptor)) => answer,
            () = self.clock.sleep(ANSWERS_WITHIN) => return false,
        };
        let is_damaged = matches!(answer, Err(index::Error::Corrupt(_)));
        answer.is_ok() || is_damaged && taken_back.contains(&id)
    }

    /// Waits until a claim ends, or its process is gone, which is looked at from this time on.
    /// Returns which.
    async fn is_gone(&self, claim: HostClaim, from: Duration) -> (HostClaim, bool) {
        let gone = async {
            self.clock.sleep(from.saturating_sub(self.clock.monotonic())).await;
            self.watch.gone(claim.holder).await;
        };
        tokio::select! {
            biased;
            () = self.claims.ended(claim) => (claim, false),
            () = gone => (claim, true),
        }
    }

    /// Removes the claim of a process that seems gone.
    async fn remove(&self, claim: HostClaim, known: &mut Known) {
        let node = claim.holder.node;
        known.removed.insert(node, self.clock.monotonic());
        tracing::warn!(%node, "nobody listens where partitions are served: others get them");
        let key = host_claim(node);
        let when = Compare::ModRevision(key.clone(), claim.revision);
        // If it is not known whether it was removed, its session ends soon.
        if let Err(error) = self.coordinator.txn(&[when], &[Op::Delete(key)]).await {
            tracing::warn!(%node, %error, "the claim of a process that is gone stays for a moment");
        }
    }

    /// Makes the first map, and gives out partitions whose processes serve no more.
    async fn give_out(
        &self,
        claims: &[HostClaim],
        may_return: bool,
        known: &mut Known,
    ) -> Result<(), index::Error> {
        let (map, hosts) = (self.map.all(|_| true), self.hosts(claims, known));
        if map.is_empty() {
            let taking: Vec<HostId> =
                hosts.taking.iter().map(|node| HostId::of(*node, 0)).collect();
            let (coordinator, count) = (self.coordinator.as_ref(), self.initial_partitions);
            return create_map(coordinator, self.cluster, (&taking, count)).await;
        }
        let waits = |node: NodeId| may_return && node.get() != 0 && !self.claims.has_seen(node);
        let placed = hosts.give_out(&map, waits);
        for some in placed.chunks(TOGETHER) {
            let old = some.iter().map(|one| one.partition.descriptor.host.node());
            let gone: BTreeSet<NodeId> = old.collect();
            let gone: Vec<Compare> =
                gone.into_iter().map(|node| Compare::Absent(host_claim(node))).collect();
            self.name(some, &gone, known).await;
        }
        Ok(())
    }

    /// Names other hosts in descriptors, unless one has changed, or one of these does not hold.
    async fn name(&self, placed: &[Placed], when: &[Compare], known: &mut Known) {
        let unchanged = placed.iter().map(|one| {
            let Found { descriptor, revision } = &one.partition;
            Compare::ModRevision(PartitionDescriptor::coordinator_key(descriptor.id), *revision)
        });
        let when: Vec<Compare> = unchanged.chain(when.iter().cloned()).collect();
        let put = |one: &Placed| {
            let descriptor =
                PartitionDescriptor { host: one.to, ..one.partition.descriptor.clone() };
            Op::Put(PartitionDescriptor::coordinator_key(descriptor.id), descriptor.encode())
        };
        let then: Vec<Op> = placed.iter().map(put).collect();
        // After a rejection, or an unknown outcome, the map shows what is left to do.
        match self.coordinator.txn(&when, &then).await {
            Ok(TxnReply::Committed(_)) => {
                tracing::info!(
                    partitions = placed.len(),
                    "partitions were given to other processes"
                );
                let now = self.clock.monotonic();
                placed.iter().for_each(|one| known.note_given(one, now));
            }
            Ok(TxnReply::Rejected(_)) => {}
            Err(error) => tracing::warn!(%error, "partitions are given out later"),
        }
    }

    /// The partition to move now.
    fn due_move(&self, claims: &[HostClaim], known: &mut Known) -> Option<Placed> {
        let now = self.clock.monotonic();
        if known.last_move.is_some_and(|last| now < last + MOVES_EVERY) {
            return None;
        }
        let map = self.map.all(|_| true);
        known.moved.retain(|_, at| now < *at + STAYS);
        let rest = |id: PartitionId| known.moved.contains_key(&id);
        let (hosts, is_new) = (self.hosts(claims, known), known.loads.take_new());
        let (rest, load) = (&rest, |id| known.loads.of(id));
        let by_load = || if is_new { hosts.equalising_move(&map, rest, load) } else { None };
        let placed = hosts.next_move(&map, rest, load).or_else(by_load)?;
        known.moved.insert(placed.partition.descriptor.id, now);
        known.last_move = Some(now);
        Some(placed)
    }

    /// Has a partition given away. Returns it if it was.
    async fn give(&self, placed: Placed) -> Option<Placed> {
        let (descriptor, to) = (&placed.partition.descriptor, placed.to);
        let given = self.moves.give(Target::of(descriptor), to).await;
        audit_line::of_a_move(&self.audit_log, descriptor.id, to, given.as_ref().err());
        match given {
            Ok(()) => Some(placed),
            Err(error) => {
                tracing::warn!(partition = %descriptor.id, host = %to, %error, "it was not moved");
                None
            }
        }
    }
}

impl Opening {
    /// A partition that is where it was found.
    fn found(found: &Found, since: Duration) -> Self {
        let before = Revision(found.revision.0.saturating_sub(1));
        Self { at: found.descriptor.host.node(), since, before }
    }
}

impl Known {
    /// The partitions to ask for next, by turns.
    fn next_asked(&mut self) -> Vec<(PartitionId, Opening)> {
        let last = self.asked_to.unwrap_or(PartitionId::new(0));
        let ids: Vec<PartitionId> = self.opening.keys().copied().collect();
        let (before, after): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| *id <= last);
        let next: Vec<PartitionId> = after.into_iter().chain(before).take(ASKED_AT_ONCE).collect();
        self.asked_to = next.last().copied();
        next.into_iter().filter_map(|id| Some((id, *self.opening.get(&id)?))).collect()
    }

    /// From when on the claim of a node may be removed.
    fn removes_from(&self, node: NodeId) -> Duration {
        let of_node = self.removed.get(&node).map(|at| *at + REMOVES_EVERY);
        let of_others = self.removed.values().max().map(|at| *at + REMOVES_APART);
        of_node.max(of_others).unwrap_or_default()
    }

    fn note_given(&mut self, placed: &Placed, now: Duration) {
        let Found { descriptor, revision } = &placed.partition;
        let (at, before) = (placed.to.node(), *revision);
        let opening = Opening { at, since: now, before };
        self.opening.insert(descriptor.id, opening);
    }
}

#[cfg(test)]
mod tests;
