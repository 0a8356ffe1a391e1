//! Repairs the groups of a cluster, at the node that manages the index: copies that are missing are
//! made again, and copies of nodes that were lost, drained or removed are replaced.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::Nodes;
use crate::capacity::cluster::Present;
use crate::capacity::cluster::Step;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupAt;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::GroupState;
use crate::coordinator::Coordinator;
use crate::coordinator::Revision;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::env::Clock;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

use super::absent::Absent;
use super::absent::DEAD_AFTER;
use super::metrics::ManagerMetrics;
use super::unfinished::Unfinished;

/// A node that has been away for so long is lost: its copies are made again elsewhere. Not while
/// more than a third of the nodes with copies are away.
const LOST_AFTER: Duration = Duration::from_secs(600);
/// How often all groups are looked at.
const ROUND_EVERY: Duration = Duration::from_secs(5);
/// Bytes a second that repair reads, so that it yields to clients.
const BYTES_PER_SECOND: u64 = 64 << 20;
/// Steps for one group in a round.
const STEPS_MAX: usize = 512;

/// What repair works with.
#[derive(Debug)]
pub(super) struct Repair {
    pub(super) capacity: Arc<ClusterCapacity>,
    pub(super) groups: Arc<GroupFollower>,
    pub(super) nodes: Arc<dyn Nodes>,
    pub(super) table: Arc<NodeTable>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) metrics: ManagerMetrics,
}

/// What a group looked like when it was found to be as it should be: its record, and the lives of
/// its members. A member that has started again may lack bytes.
type Seen = (Revision, Vec<Option<Incarnation>>);

/// Who has no session, since when.
#[derive(Debug, Default)]
struct Away {
    nodes: Absent<NodeId>,
    writers: Absent<Incarnation>,
}

impl Repair {
    /// Repairs for ever.
    pub(super) async fn run(self) {
        let mut absent = Away::default();
        let mut good: BTreeMap<GroupId, Seen> = BTreeMap::new();
        let mut waited_for = BTreeMap::new();
        loop {
            let mut present = self.present(&mut absent);
            let mut looked = self.clock.monotonic();
            let mut waiting = BTreeMap::new();
            let all = self.groups.all();
            self.show(&all, &good, &present).await;
            for at in all {
                // A round may take hours.
                if self.clock.monotonic() > looked + ROUND_EVERY {
                    present = self.present(&mut absent);
                    looked = self.clock.monotonic();
                }
                let group = at.record.id();
                let seen = (at.revision, self.lives(at.record.members()));
                let leaves = at.record.members().iter().any(|node| present.leaving.contains(node));
                if !leaves && good.get(&group) == Some(&seen) {
                    continue;
                }
                match self.repair(group, &present).await {
                    Ok(Step::Done) => drop(good.insert(group, seen)),
                    Ok(Step::Waits(why)) => *waiting.entry(why.to_owned()).or_insert(0_u64) += 1,
                    Ok(Step::Written | Step::Changed | Step::Pulled(_)) => {}
                    Err(why) => {
                        tracing::info!(%group, why, "a group is repaired later");
                        *waiting.entry("of an error".to_owned()).or_insert(0) += 1;
                    }
                }
            }
            if waiting != waited_for {
                for (why, groups) in &waiting {
                    tracing::info!(groups, why, "groups wait for their repair");
                }
                if waiting.is_empty() {
                    tracing::info!("all groups have their copies");
                }
            }
            waited_for = waiting;
            self.show(&self.groups.all(), &good, &present).await;
            self.clock.sleep(ROUND_EVERY).await;
        }
    }

    /// Stores how many closed groups are not yet known to be as they should be, for `cluster
    /// status`.
    async fn show(&self, groups: &[GroupAt], good: &BTreeMap<GroupId, Seen>, present: &Present) {
        let is_open = |at: &&GroupAt| {
            let (state, writer) = (at.record.state(), at.record.writer());
            state == GroupState::Open && present.writers.contains(&writer)
        };
        let is_good = |at: &&GroupAt| {
            let leaves = at.record.members().iter().any(|node| present.leaving.contains(node));
            let seen = (at.revision, self.lives(at.record.members()));
            let is_empty = Extents::ALL.without(at.record.gone()).is_empty();
            is_empty || (!leaves && good.get(&at.record.id()) == Some(&seen))
        };
        let unfinished = groups.iter().filter(|at| !is_open(at) && !is_good(at)).count();
        self.metrics.unfinished.set(i64::try_from(unfinished).unwrap_or(i64::MAX));
        let shown = Unfinished(u64::try_from(unfinished).unwrap_or(u64::MAX));
        if let Err(error) = shown.store(&*self.coordinator).await {
            tracing::debug!(%error, "the progress of repair is not shown");
        }
    }

    /// Takes steps for a group until there is nothing to do.
    async fn repair(&self, group: GroupId, present: &Present) -> Result<Step, String> {
        let mut last = Step::Done;
        for _ in 0..STEPS_MAX {
            last = self.capacity.repair(group, present).await.map_err(|error| error.to_string())?;
            match last {
                Step::Done | Step::Written | Step::Waits(_) => break,
                // The members follow the record.
                Step::Changed => self.clock.sleep(Duration::from_millis(50)).await,
                Step::Pulled(bytes) => {
                    self.metrics.repaired_bytes.inc_by(bytes);
                    let pause = Duration::from_millis(bytes * 1000 / BYTES_PER_SECOND);
                    self.clock.sleep(pause).await;
                }
            }
        }
        Ok(last)
    }

    fn lives(&self, nodes: &[NodeId]) -> Vec<Option<Incarnation>> {
        let life = |node: &NodeId| Some(self.table.get(*node)?.life?.incarnation);
        nodes.iter().map(life).collect()
    }

    /// Who is there, and who is not coming back.
    fn present(&self, absent: &mut Away) -> Present {
        let all = self.table.all();
        let now = self.clock.monotonic();
        let groups = self.groups.all();
        // However many nodes without copies come and go.
        let holders: BTreeSet<NodeId> =
            groups.iter().flat_map(|at| at.record.members()).copied().collect();
        let counts =
            |at: &&NodeAt| at.record.state != NodeState::Removed && holders.contains(&at.id);
        let kept = all.iter().filter(counts);
        let (there, away): (Vec<&NodeAt>, Vec<&NodeAt>) = kept.partition(|at| at.life.is_some());
        absent.nodes.set(away.iter().map(|at| at.id), now);
        // A part of the network may be cut off, with everything in it.
        let are_most_there = there.len() >= 2 * away.len();
        let leaves = |at: &&NodeAt| match at.record.state {
            NodeState::Removed | NodeState::Draining => true,
            NodeState::Active => are_most_there && absent.nodes.is_longer(&at.id, LOST_AFTER, now),
        };
        let leaving = all.iter().filter(leaves).map(|at| at.id).collect();
        let lives = all.iter().filter_map(|at| at.life.as_ref());
        let mut writers: BTreeSet<Incarnation> = lives.map(|life| life.incarnation).collect();
        let of_groups: BTreeSet<Incarnation> = groups.iter().map(|at| at.record.writer()).collect();
        absent.writers.set(of_groups.difference(&writers).copied(), now);
        // The table of nodes may be behind the records of groups.
        let is_late = |writer: &&Incarnation| !absent.writers.is_longer(writer, DEAD_AFTER, now);
        writers.extend(of_groups.iter().filter(is_late));
        Present { table: self.nodes.table(), leaving, writers }
    }
}
