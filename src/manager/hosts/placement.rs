//! Which process serves which partition: all have about equally many, and about equal load.
//!
//! Each partition counts as its load and a little more. While loads are known, every move but that
//! from a drained node makes the sum of the squares of what the processes have smaller. So moves
//! end when the load does not change, and none undoes what another one did.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::index::Found;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;

/// A partition moves from a process to one that has at least so many fewer.
const UNEVEN: usize = 2;
/// What a partition counts beside its load, as a multiple of the load of a hot partition.
const BASE: f64 = 0.05;
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
        load: impl Fn(PartitionId) -> Option<f64>,
    ) -> Option<Placed> {
        let counts = self.counts(map);
        let (to, _) = counts.iter().min_by_key(|(_, count)| **count)?;
        let load_of = |one: &Found| load(one.descriptor.id).unwrap_or_default();
        let of = |node: NodeId| {
            let there = map.iter().filter(move |one| one.descriptor.host.node() == node);
            let may_move = there.filter(|one| !rest(one.descriptor.id));
            may_move.min_by(|a, b| load_of(a).total_cmp(&load_of(b))).cloned()
        };
        if let Some(partition) = self.leaving.iter().find_map(|node| of(*node)) {
            return Some(Placed { partition, to: HostId::of(*to, 0) });
        }
        let (from, most) = counts.iter().max_by_key(|(_, count)| **count)?;
        let partition = of(*from)?;
        let sums = self.sums(map, &load);
        let is_better = |to: NodeId| match (sums.get(from), sums.get(&to)) {
            (Some(from), Some(to)) => from - to > load_of(&partition) + BASE,
            // Where loads are not known, the numbers decide.
            (None, _) | (_, None) => true,
        };
        let mut fewer: Vec<(usize, NodeId)> =
            counts.iter().map(|(node, count)| (*count, *node)).collect();
        fewer.retain(|(count, _)| *most >= count + UNEVEN);
        fewer.sort_unstable();
        let (_, to) = fewer.into_iter().find(|(_, node)| is_better(*node))?;
        Some(Placed { partition, to: HostId::of(to, 0) })
    }

    /// What each process has that takes more, if the load of all its partitions is known.
    fn sums(
        &self,
        map: &[Found],
        load: impl Fn(PartitionId) -> Option<f64>,
    ) -> BTreeMap<NodeId, f64> {
        let mut sums: BTreeMap<NodeId, Option<f64>> =
            self.taking.iter().map(|node| (*node, Some(0.0))).collect();
        for one in map {
            if let Some(sum) = sums.get_mut(&one.descriptor.host.node()) {
                let more = load(one.descriptor.id).map(|load| load + BASE);
                *sum = sum.zip(more).map(|(sum, more)| sum + more);
            }
        }
        sums.into_iter().filter_map(|(node, sum)| Some((node, sum?))).collect()
    }

    /// The partition to move from a process with much load to that with the least: the one that
    /// makes them most equal. Partitions that `rest` stay.
    pub(super) fn equalising_move(
        &self,
        map: &[Found],
        rest: impl Fn(PartitionId) -> bool,
        load: impl Fn(PartitionId) -> Option<f64>,
    ) -> Option<Placed> {
        let sums = self.sums(map, &load);
        let (to, least) = sums.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let mut sources: Vec<(NodeId, f64)> = sums.iter().map(|(id, sum)| (*id, *sum)).collect();
        sources.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let best_of = |(from, most): (NodeId, f64)| {
            let difference = most - least;
            if difference < UNEQUAL.max(most * UNEQUAL_SHARE) {
                return None;
            }
            let gain = |one: &Found| {
                let moved = load(one.descriptor.id).unwrap_or_default() + BASE;
                difference - (difference - 2.0 * moved).abs()
            };
            let there = map.iter().filter(|one| one.descriptor.host.node() == from);
            let may_move = there.filter(|one| !rest(one.descriptor.id));
            let best = may_move.max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
            (gain(best) >= difference * GAIN).then_some(best)
        };
        let partition = sources.into_iter().find_map(best_of)?.clone();
        Some(Placed { partition, to: HostId::of(*to, 0) })
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
        let load = |_| Some(0.0);
        places(&hosts.next_move(&map(nodes), rest, load).into_iter().collect::<Vec<_>>())
    }

    /// The partitions have these loads, in tenths of that of a hot one.
    fn equalised(hosts: &Hosts, nodes: &[u64], loads: &[u32]) -> Vec<(u64, u64)> {
        let moved = hosts.equalising_move(&map(nodes), |_| false, |id| Some(load_of(loads, id)));
        places(&moved.into_iter().collect::<Vec<_>>())
    }

    fn load_of(loads: &[u32], id: PartitionId) -> f64 {
        f64::from(loads[usize::try_from(id.get()).unwrap() - 1]) / 10.0
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
        let load = |id: PartitionId| Some(if id.get() == 1 { 1.0 } else { 0.0 });
        let moved = hosts(&[1, 2], &[]).next_move(&map(&[1, 1, 1, 2]), |_| false, load);
        assert_eq!(places(&[moved.unwrap()]), [(2, 2)], "not the one with the load");
        let load = |id: PartitionId| Some(if id.get() == 4 { 1.0 } else { 0.0 });
        let moved = hosts(&[1, 2], &[]).next_move(&map(&[1, 1, 1, 2]), |_| false, load);
        assert_eq!(moved, None, "the other one has more load");
        let unknown = |id: PartitionId| (id.get() == 4).then_some(1.0);
        let moved = hosts(&[1, 2], &[]).next_move(&map(&[1, 1, 1, 2]), |_| false, unknown);
        assert_eq!(places(&[moved.unwrap()]), [(1, 2)], "the numbers decide");
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
        let three = hosts(&[1, 2, 3], &[]);
        assert_eq!(
            equalised(&three, &[1, 2, 2, 3], &[100, 30, 30, 0]),
            [(3, 3)],
            "of the next one"
        );
        let unknown = |id: PartitionId| (id.get() != 3).then_some(1.0);
        let moved = two.equalising_move(&map(&[1, 1, 2]), |_| false, unknown);
        assert_eq!(moved, None, "one may have more load than it seems");
    }

    #[test]
    fn moves_end_while_the_load_does_not_change() {
        let mut random = Random(1);
        for _ in 0..2_000 {
            let all: Vec<u64> = (1..=2 + random.below(4)).collect();
            let partitions = 1 + random.below(24);
            let mut nodes: Vec<u64> =
                (0..partitions).map(|_| 1 + random.below(all.len() as u64)).collect();
            let loads: Vec<u32> = (0..partitions)
                .map(|_| u32::try_from(random.below(3) * random.below(20)).unwrap())
                .collect();
            let all = hosts(&all, &[]);
            let mut moves = 0;
            loop {
                let (map, load) = (map(&nodes), |id| Some(load_of(&loads, id)));
                let next = all.next_move(&map, |_| false, load);
                let next = next.or_else(|| all.equalising_move(&map, |_| false, load));
                let Some(next) = next else { break };
                let id = usize::try_from(next.partition.descriptor.id.get()).unwrap();
                nodes[id - 1] = next.to.node().get();
                moves += 1;
                assert!(moves <= 4 * partitions, "{nodes:?} {loads:?}");
            }
        }
    }

    /// A linear congruential generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }
    }
}
