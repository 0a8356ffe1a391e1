//! Which process serves which partition: all have about equally many, and about equal load.
//!
//! A move for the numbers takes the partition with the least load, and a move for the load makes
//! the numbers at most a little uneven: neither undoes what the other did.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::index::Found;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;

/// A partition moves from a process to one that has at least so many fewer.
const UNEVEN: usize = 2;
/// A partition moves to a process with less load if the difference is at least this multiple of
/// the load of a hot partition,
const UNEQUAL: f64 = 0.5;
/// and at least this share of the greater load.
const UNEQUAL_SHARE: f64 = 0.25;
/// The least share of the difference that a move must take away.
const GAIN: f64 = 0.25;

/// The processes that serve partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hosts {
    /// Those that take more.
    pub(super) taking: BTreeSet<NodeId>,
    /// Those that take no more for a while.
    pub(super) keeping: BTreeSet<NodeId>,
    /// Those whose nodes are drained: they give theirs away.
    pub(super) leaving: BTreeSet<NodeId>,
}

/// A partition, and the host that is to serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) partition: Found,
    pub(super) to: HostId,
}

impl Hosts {
    fn has(&self, node: NodeId) -> bool {
        [&self.taking, &self.keeping, &self.leaving].iter().any(|nodes| nodes.contains(&node))
    }

    /// How many partitions each has that takes more.
    fn counts(&self, map: &[Found]) -> BTreeMap<NodeId, usize> {
        let mut counts: BTreeMap<NodeId, usize> =
            self.taking.iter().map(|node| (*node, 0)).collect();
        for found in map {
            if let Some(count) = counts.get_mut(&found.descriptor.host.node()) {
                *count += 1;
            }
        }
        counts
    }

    /// New hosts for the partitions of processes that serve none any more. Those of nodes that
    /// `may_return` wait for them.
    pub(super) fn give_out(
        &self,
        map: &[Found],
        may_return: impl Fn(NodeId) -> bool,
    ) -> Vec<Placed> {
        let is_free = |node: NodeId| !self.has(node) && !may_return(node);
        self.place(map, |one| is_free(one.descriptor.host.node()))
    }

    /// New hosts for partitions that `are_late`: their processes do not open them.
    pub(super) fn take_back(
        &self,
        map: &[Found],
        are_late: impl Fn(PartitionId) -> bool,
    ) -> Vec<Placed> {
        if self.taking.is_empty() {
            return Vec::new();
        }
        self.place(map, |one| are_late(one.descriptor.id))
    }

    fn place(&self, map: &[Found], is_placed: impl Fn(&Found) -> bool) -> Vec<Placed> {
        let mut counts = self.counts(map);
        if counts.is_empty() {
            // Better one that may not open it than nobody.
            counts = Self { taking: self.keeping.clone(), ..Self::default() }.counts(map);
        }
        let mut placed = Vec::new();
        for partition in map.iter().filter(|one| is_placed(one)) {
            let least = counts.iter_mut().min_by_key(|(_, count)| **count);
            let Some((to, count)) = least else { return Vec::new() };
            *count += 1;
            placed.push(Placed { partition: partition.clone(), to: HostId::of(*to, 0) });
        }
        placed
    }

    /// The next partition to move: from a node that is drained, or from the process with most to
    /// the one with fewest. Partitions that `rest` stay; of the others that with the least load
    /// moves.
    pub(super) fn next_move(
        &self,
        map: &[Found],
        rest: impl Fn(PartitionId) -> bool,
        load: impl Fn(PartitionId) -> f64,
    ) -> Option<Placed> {
        let counts = self.counts(map);
        let (to, fewest) = counts.iter().min_by_key(|(_, count)| **count)?;
        let of = |node: NodeId| {
            let there = map.iter().filter(move |one| one.descriptor.host.node() == node);
            let may_move = there.filter(|one| !rest(one.descriptor.id));
            let load = |one: &Found| load(one.descriptor.id);
            may_move.min_by(|a, b| load(a).total_cmp(&load(b))).cloned()
        };
        let leaves = self.leaving.iter().find_map(|node| of(*node));
        let (most_of, most) = counts.iter().max_by_key(|(_, count)| **count)?;
        let moves = || if *most >= fewest + UNEVEN { of(*most_of) } else { None };
        let partition = leaves.or_else(moves)?;
        Some(Placed { partition, to: HostId::of(*to, 0) })
    }

    /// The partition to move from the process with the most load to that with the least: the one
    /// that makes them most equal. Partitions that `rest` stay.
    pub(super) fn equalising_move(
        &self,
        map: &[Found],
        rest: impl Fn(PartitionId) -> bool,
        load: impl Fn(PartitionId) -> f64,
    ) -> Option<Placed> {
        let mut loads: BTreeMap<NodeId, f64> =
            self.taking.iter().map(|node| (*node, 0.0)).collect();
        for one in map {
            if let Some(sum) = loads.get_mut(&one.descriptor.host.node()) {
                *sum += load(one.descriptor.id);
            }
        }
        let (to, least) = loads.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let (from, most) = loads.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let difference = most - least;
        if difference < UNEQUAL.max(most * UNEQUAL_SHARE) {
            return None;
        }
        let there = map.iter().filter(|one| one.descriptor.host.node() == *from);
        let gain = |one: &Found| {
            let after = (difference - 2.0 * load(one.descriptor.id)).abs();
            difference - after
        };
        let best = there
            .filter(|one| !rest(one.descriptor.id))
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))
            .filter(|one| gain(one) >= difference * GAIN)?;
        Some(Placed { partition: best.clone(), to: HostId::of(*to, 0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::Revision;
    use crate::index::PartitionDescriptor;
    use crate::types::Epoch;
    use crate::types::KeyRange;

    fn map(nodes: &[u64]) -> Vec<Found> {
        let found = |(id, node): (u64, &u64)| Found {
            descriptor: PartitionDescriptor {
                id: PartitionId::new(id),
                keys: KeyRange::all().into(),
                epoch: Epoch::new(1),
                log: Vec::new(),
                host: HostId::of(NodeId::new(*node), 0),
            },
            revision: Revision(id),
        };
        (1..).zip(nodes).map(found).collect()
    }

    fn hosts(taking: &[u64], leaving: &[u64]) -> Hosts {
        let set = |nodes: &[u64]| nodes.iter().copied().map(NodeId::new).collect();
        Hosts { taking: set(taking), leaving: set(leaving), ..Hosts::default() }
    }

    fn places(placed: &[Placed]) -> Vec<(u64, u64)> {
        let place = |one: &Placed| (one.partition.descriptor.id.get(), one.to.node().get());
        placed.iter().map(place).collect()
    }

    fn moved(hosts: &Hosts, nodes: &[u64], rests: u64) -> Vec<(u64, u64)> {
        let rest = |id: PartitionId| id.get() == rests;
        let load = |_| 0.0;
        places(&hosts.next_move(&map(nodes), rest, load).into_iter().collect::<Vec<_>>())
    }

    /// The partitions have these loads, in tenths of that of a hot one.
    fn equalised(hosts: &Hosts, nodes: &[u64], loads: &[u32]) -> Vec<(u64, u64)> {
        let of = |id: PartitionId| usize::try_from(id.get()).unwrap() - 1;
        let load = |id: PartitionId| f64::from(loads[of(id)]) / 10.0;
        let moved = hosts.equalising_move(&map(nodes), |_| false, load);
        places(&moved.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn partitions_of_a_process_that_ended_go_to_those_with_fewest() {
        let of = |hosts: &Hosts, nodes: &[u64]| places(&hosts.give_out(&map(nodes), |_| false));
        let three = hosts(&[1, 2, 3], &[]);
        assert_eq!(of(&three, &[1, 2, 3]), []);
        assert_eq!(of(&three, &[1, 1, 2, 9, 9, 9]), [(4, 3), (5, 2), (6, 3)]);
        assert_eq!(of(&hosts(&[2], &[1]), &[1, 9, 1]), [(2, 2)], "a drained one serves on");
        assert_eq!(of(&hosts(&[], &[1]), &[9]), [], "nobody takes it");
        let keeping = Hosts { keeping: [NodeId::new(1)].into(), ..Hosts::default() };
        assert_eq!(of(&keeping, &[1, 9]), [(2, 1)]);
        assert_eq!(keeping.take_back(&map(&[1]), |_| true), []);
        let waits = three.give_out(&map(&[8, 9]), |node| node.get() == 9);
        assert_eq!(places(&waits), [(1, 1)]);
    }

    #[test]
    fn partitions_move_until_all_have_about_equally_many() {
        let three = hosts(&[1, 2, 3], &[]);
        assert_eq!(moved(&three, &[1, 1, 2, 2, 3], 0), [], "one more is no reason");
        assert_eq!(moved(&three, &[1, 1, 2, 3, 2, 2], 0), [(3, 3)]);
        assert_eq!(moved(&three, &[1, 1, 2, 3, 2, 2], 3), [(5, 3)]);
        assert_eq!(moved(&hosts(&[1, 2], &[3]), &[1, 1, 2, 3], 0), [(4, 2)]);
        assert_eq!(moved(&hosts(&[1, 2], &[3]), &[1, 2, 3], 3), []);
        assert_eq!(moved(&hosts(&[], &[3]), &[3], 0), []);
        let load = |id: PartitionId| if id.get() == 1 { 1.0 } else { 0.0 };
        let moved = hosts(&[1, 2], &[]).next_move(&map(&[1, 1, 1, 2]), |_| false, load);
        assert_eq!(places(&[moved.unwrap()]), [(2, 2)], "not the one with the load");
    }

    #[test]
    fn partitions_move_until_all_processes_have_about_equal_load() {
        let two = hosts(&[1, 2], &[]);
        assert_eq!(equalised(&two, &[1, 1, 2], &[10, 10, 0]), [(2, 2)]);
        assert_eq!(equalised(&two, &[1, 1, 2], &[9, 3, 0]), [(2, 2)], "what makes them most equal");
        assert_eq!(equalised(&two, &[1, 2, 2], &[10, 0, 0]), [], "it would be as unequal there");
        assert_eq!(equalised(&two, &[1, 1, 2], &[2, 2, 0]), [], "that is little load");
        assert_eq!(equalised(&two, &[1, 1, 2], &[50, 10, 50]), [], "a sixth of it");
        assert_eq!(equalised(&two, &[1, 1, 2], &[50, 1, 20]), [], "too small to help");
        let leaving = hosts(&[1, 2], &[3]);
        assert_eq!(equalised(&leaving, &[1, 2, 3], &[0, 0, 50]), [], "it is drained anyway");
        // However often: what it moves for one reason does not come back for another.
        let (mut nodes, loads) = (vec![1, 1, 1, 1, 2, 2, 2, 2], [9, 7, 5, 3, 0, 0, 0, 0]);
        let mut moves = 0;
        loop {
            let by_load = equalised(&two, &nodes, &loads);
            let load = |id: PartitionId| f64::from(loads[usize::try_from(id.get()).unwrap() - 1]);
            let by_number = two.next_move(&map(&nodes), |_| false, load);
            let next = by_load.first().copied();
            let next = next.or_else(|| places(&by_number.into_iter().collect::<Vec<_>>()).pop());
            let Some((id, to)) = next else { break };
            nodes[usize::try_from(id).unwrap() - 1] = to;
            moves += 1;
            assert!(moves < 9, "{nodes:?}");
        }
        assert!(moves > 1, "{nodes:?}");
    }
}
