use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

fn node(id: u64, machine: &str, zone: &str) -> NodeRow {
    NodeRow {
        id: NodeId::new(id),
        machine: machine.to_owned(),
        zone: zone.to_owned(),
        room: 100 * GIB,
        load: 0,
        state: NodeState::Active,
        is_away: false,
    }
}

/// Six machines in three zones.
fn table() -> Vec<NodeRow> {
    (0..6).map(|id| node(id, &format!("m{id}"), &format!("z{}", id % 3))).collect()
}

fn want(copies: usize, random: u64) -> Want {
    Want { copies, room_min: GIB, random }
}

fn ids(placed: &Placed) -> Vec<u64> {
    placed.members.iter().map(|node| node.get()).collect()
}

fn count<T: Ord>(all: impl Iterator<Item = T>) -> usize {
    all.collect::<BTreeSet<T>>().len()
}

#[test]
fn members_are_on_different_machines_of_different_zones() {
    let table = table();
    for random in 0..200 {
        let placed = place(&table, want(3, random));
        assert_eq!(count(ids(&placed).into_iter().map(|id| id % 3)), 3, "{placed:?}");
        assert_eq!(placed.full_machines, 0);
    }
    for random in 0..200 {
        let mut zones: Vec<u64> =
            ids(&place(&table, want(4, random))).iter().map(|id| id % 3).collect();
        zones.sort_unstable();
        let of = |zone| zones.iter().filter(|z| **z == zone).count();
        assert!((0..3).all(|zone| of(zone) == 1 || of(zone) == 2), "{zones:?}");
    }
}

#[test]
fn two_nodes_of_one_machine_are_never_in_one_group() {
    let table = [node(1, "a", "x"), node(2, "a", "x"), node(3, "b", "x"), node(4, "b", "x")];
    for random in 0..100 {
        let placed = place(&table, want(3, random));
        assert_eq!(placed.members.len(), 2, "there are two machines");
        assert_eq!(count(ids(&placed).into_iter().map(|id| id <= 2)), 2, "{placed:?}");
    }
}

#[test]
fn nodes_that_are_away_draining_removed_or_full_get_nothing() {
    let mut table = table();
    table[0].is_away = true;
    table[1].state = NodeState::Draining;
    table[2].state = NodeState::Removed;
    table[3].room = GIB - 1;
    for random in 0..100 {
        let mut placed = place(&table, want(3, random));
        placed.members.sort_unstable();
        assert_eq!((ids(&placed), placed.full_machines), (vec![4, 5], 1));
    }
    table.iter_mut().for_each(|row| row.room = 0);
    let none = place(&table, Want { copies: 3, room_min: 0, random: 1 });
    assert_eq!((none.members.len(), none.full_machines), (0, 3), "away is not full");
    assert_eq!(place(&[], want(3, 1)), Placed { members: Vec::new(), full_machines: 0 });
}

#[test]
fn machine_with_one_full_node_of_two_is_not_full() {
    let table = [NodeRow { room: 0, ..node(1, "a", "x") }, node(2, "a", "x")];
    let placed = place(&table, want(2, 1));
    assert_eq!((ids(&placed), placed.full_machines), (vec![2], 0));
}

/// How often each of the nodes is chosen in `rounds`.
fn chosen(table: &[NodeRow], rounds: u64) -> Vec<usize> {
    let mut counts = vec![0; table.len()];
    for random in 0..rounds {
        for id in ids(&place(table, want(1, random))) {
            counts[usize::try_from(id).unwrap()] += 1;
        }
    }
    counts
}

#[test]
fn room_and_load_decide_how_often_a_node_is_chosen() {
    let mut table: Vec<NodeRow> = (0..3).map(|id| node(id, &format!("m{id}"), "x")).collect();
    table[0].room *= 2;
    let counts = chosen(&table, 10_000);
    assert!((4_800..5_200).contains(&counts[0]), "{counts:?}");
    assert!((2_300..2_700).contains(&counts[1]), "{counts:?}");
    table[0].load = LOAD_FULL;
    table[1].load = LOAD_FULL / 2;
    // 2 x 1, 1 x 5.5 and 1 x 10 of 17.5.
    let counts = chosen(&table, 17_500);
    assert!((1_800..2_200).contains(&counts[0]), "{counts:?}");
    assert!((5_200..5_800).contains(&counts[1]), "{counts:?}");
    table[0].load = u32::MAX;
    assert!(chosen(&table, 10_000)[0] > 0, "more than full is full");
}

#[test]
fn choice_depends_on_the_random_number_alone() {
    let mut table = table();
    let first: Vec<_> = (0..50).map(|random| place(&table, want(3, random))).collect();
    table.reverse();
    table.push(table[0].clone());
    let again: Vec<_> = (0..50).map(|random| place(&table, want(3, random))).collect();
    assert_eq!(first, again, "neither order nor repetition of rows matters");
    assert!(count(first.iter().map(|placed| placed.members.clone())) > 25, "{first:?}");
    table.iter_mut().for_each(|row| row.room = u64::MAX);
    assert_eq!(place(&table, want(3, 1)).members.len(), 3, "no room is too large");
    let golden = ids(&place(&self::table(), want(3, 7)));
    assert_eq!(golden, [1, 3, 5], "the same on every machine");
}

#[test]
fn second_group_shares_as_little_as_it_can_with_the_first() {
    let table = table();
    for random in 0..100 {
        let first = place(&table, want(3, random));
        let second = place_apart(&table, want(3, random + 1), &first.members);
        assert!(first.members.iter().all(|node| !second.members.contains(node)));
        // All are used up: the third group takes one of each zone, whichever.
        let both = [first.members, second.members].concat();
        let third = place_apart(&table, want(3, random + 2), &both);
        assert_eq!(count(ids(&third).into_iter().map(|id| id % 3)), 3);
    }
}

#[test]
fn another_node_of_a_machine_is_better_than_the_same_and_worse_than_another_machine() {
    let table = [node(1, "a", "x"), node(2, "a", "x"), node(3, "b", "x"), node(4, "c", "x")];
    for random in 0..50 {
        let second = place_apart(&table, want(3, random), &[NodeId::new(1)]);
        assert_eq!(ids(&second)[2], 2, "{second:?}");
        let mut members = ids(&place_apart(&table, want(2, random), &[NodeId::new(1)]));
        members.sort_unstable();
        assert_eq!(members, [3, 4]);
    }
}

/// How good a choice is; less is better: machines that are missing, how uneven the zones are, and
/// what it shares with the other groups.
fn cost(rows: &[&NodeRow], table: &[NodeRow], others: &[NodeId]) -> (usize, usize, usize, usize) {
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *zones.entry(row.zone.as_str()).or_default() += 1);
    let shared = rows.iter().filter(|row| others.contains(&row.id)).count();
    let beside = |row: &&&NodeRow| {
        table.iter().any(|other| others.contains(&other.id) && other.machine == row.machine)
    };
    let uneven = zones.values().map(|count| count * count).sum();
    (table.len() - rows.len(), uneven, shared, rows.iter().filter(beside).count())
}

prop_compose! {
    fn random_row()(machine in 0..5u8, load in 0..1_200u32, room in 0..4u64, state in 0..8u8)
        -> (u8, u32, u64, u8) {
        (machine, load, room, state)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_choice_is_better(
        rows in proptest::collection::vec(random_row(), 0..8),
        zone_of in proptest::collection::vec(0..3u8, 5),
        others in proptest::collection::btree_set(0..8u64, 0..4),
        (copies, random) in (0..5usize, any::<u64>()),
    ) {
        let table: Vec<NodeRow> = (0..).zip(rows).map(|(id, (machine, load, room, state))| NodeRow {
            load,
            room: room * GIB,
            state: if state == 0 { NodeState::Draining } else { NodeState::Active },
            is_away: state == 1,
            ..node(id, &machine.to_string(), &zone_of[usize::from(machine)].to_string())
        }).collect();
        let others: Vec<NodeId> = others.into_iter().map(NodeId::new).collect();
        let placed = place_apart(&table, want(copies, random), &others);

        let may = |row: &&NodeRow| {
            row.state == NodeState::Active && !row.is_away && row.room >= GIB
        };
        let usable: Vec<&NodeRow> = table.iter().filter(may).collect();
        let chosen: Vec<&NodeRow> =
            usable.iter().copied().filter(|row| placed.members.contains(&row.id)).collect();
        prop_assert_eq!(chosen.len(), placed.members.len(), "each is usable, and is there once");
        let apart = |rows: &[&NodeRow]| count(rows.iter().map(|row| &row.machine)) == rows.len();
        prop_assert!(apart(&chosen) && chosen.len() <= copies);
        for set in 0u32..1 << usable.len() {
            let other: Vec<&NodeRow> = (0..).zip(&usable)
                .filter(|(bit, _)| set >> bit & 1 == 1)
                .map(|(_, row)| *row)
                .collect();
            if other.len() <= copies && apart(&other) {
                let better = cost(&other, &table, &others) < cost(&chosen, &table, &others);
                prop_assert!(!better, "{:?} is better than {:?}", other, chosen);
            }
        }
    }
}
