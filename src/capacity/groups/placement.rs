//! Chooses the members of a new group: a pure function of the table of nodes and a random number.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::coordinator::nodes::NodeState;
use crate::types::NodeId;

/// A node that is busy all the time has this load.
pub const LOAD_FULL: u32 = 1000;
/// How much more often an idle node is chosen than a busy one with the same room. Busy ones are not
/// left out, since what is known of their load may be old.
const IDLE_FACTOR: u32 = 10;

/// A row of the table of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// The node.
    pub id: NodeId,
    /// The machine that it runs on: no two copies are on one.
    pub machine: String,
    /// The zone of the machine. Machines of one zone may fail together.
    pub zone: String,
    /// Bytes that new extents may take.
    pub room: u64,
    /// How busy it is, from 0 to [`LOAD_FULL`].
    pub load: u32,
    /// What an operator wants of it.
    pub state: NodeState,
    /// Whether it has no session, or is passed over for a while because it is slow.
    pub is_away: bool,
}

/// What a new group needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// How many members.
    pub copies: usize,
    /// Nodes with less room, in bytes, are full. At least 1.
    pub room_min: u64,
    /// Determines the choice between equals, by weight.
    pub random: u64,
}

/// Members of a new group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// In the order of choice. Fewer than wanted if there are too few machines.
    pub members: Vec<NodeId>,
    /// Machines whose nodes would take a copy if they were not full. A full node is not an absent
    /// one: if too few members were found and there are such machines, the store is full.
    pub full_machines: usize,
}

/// Chooses the members of a group. No two are on one machine. They are in as many zones as there
/// are, and as evenly as the machines permit. Between nodes that are equal in this, the chance of
/// each is in proportion to its room, and that of an idle one is ten times that of a busy one.
///
/// All nodes of a machine are in one zone. Rows of one node after the first are ignored.
#[must_use]
pub fn place(table: &[NodeRow], want: Want) -> Placed {
    place_apart(table, want, &[])
}

/// As [`place`], for a group beside other open ones of the same writer, whose members `others` are,
/// a node once for each of these groups. Between nodes that are equal in machines and zones, those
/// are preferred that are in the fewest of these groups, then those with the fewest of their
/// members on their machine: so that groups become slow or lose a member one by one. Room and load
/// count only after that.
#[must_use]
pub fn place_apart<'a>(table: &'a [NodeRow], want: Want, others: &[NodeId]) -> Placed {
    let takes = |row: &&NodeRow| row.state == NodeState::Active && !row.is_away;
    let (roomy, full): (Vec<&NodeRow>, Vec<&NodeRow>) =
        table.iter().filter(takes).partition(|row| row.room >= want.room_min.max(1));
    let machine_of: BTreeMap<NodeId, &str> =
        table.iter().map(|row| (row.id, row.machine.as_str())).collect();
    let is_beside = |row: &NodeRow, other: &NodeId| {
        machine_of.get(other).is_some_and(|machine| *machine == row.machine)
    };
    let mut candidates: Vec<Candidate<'_>> = roomy
        .iter()
        .map(|row| Candidate {
            row,
            shared: others.iter().filter(|other| **other == row.id).count(),
            beside: others.iter().filter(|other| is_beside(row, other)).count(),
        })
        .collect();
    // The choice does not depend on the order of the table.
    candidates.sort_by_key(|candidate| candidate.row.id);
    candidates.dedup_by_key(|candidate| candidate.row.id);
    let machines = |rows: &[&'a NodeRow]| -> BTreeSet<&'a str> {
        rows.iter().map(|row| row.machine.as_str()).collect()
    };
    let full_machines = machines(&full).difference(&machines(&roomy)).count();
    let mut random = want.random;
    let mut zones = BTreeMap::new();
    let mut members = Vec::new();
    while members.len() < want.copies && !candidates.is_empty() {
        let chosen = choose(&candidates, &zones, &mut random);
        members.push(chosen.id);
        *zones.entry(chosen.zone.as_str()).or_default() += 1;
        candidates.retain(|candidate| candidate.row.machine != chosen.machine);
    }
    Placed { members, full_machines }
}

/// A node that may become the next member.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    row: &'a NodeRow,
    /// In how many of the other groups it is.
    shared: usize,
    /// How many members of these groups are on its machine.
    beside: usize,
}

/// The next member: of the candidates whose zone has the fewest members, and that have the least to
/// do with the other groups, one by weight.
fn choose<'a>(
    candidates: &[Candidate<'a>],
    zones: &BTreeMap<&str, usize>,
    random: &mut u64,
) -> &'a NodeRow {
    let rank = |candidate: &Candidate<'_>| {
        let in_zone = zones.get(candidate.row.zone.as_str()).copied().unwrap_or(0);
        (in_zone, candidate.shared, candidate.beside)
    };
    let best = candidates.iter().map(rank).min();
    let best = candidates.iter().filter(|candidate| Some(rank(candidate)) == best);
    let weights = best.map(|candidate| (candidate.row, weight(candidate.row)));
    let total: u128 = weights.clone().map(|(_, weight)| weight).sum();
    let mut left = (u128::from(next(random)) << 64 | u128::from(next(random))) % total.max(1);
    for (row, weight) in weights {
        if left < weight {
            return row;
        }
        left -= weight;
    }
    unreachable!("what is left is less than all weights together")
}

/// The chance of a node, beside others. A node with room has one.
fn weight(row: &NodeRow) -> u128 {
    let idle = LOAD_FULL - row.load.min(LOAD_FULL);
    u128::from(row.room) * u128::from(LOAD_FULL + (IDLE_FACTOR - 1) * idle)
}

/// The next random number after `state`, the same on every machine (SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
