//! Deals the extents of a writer's groups, and says which groups it needs and which it closes. No
//! I/O: `make.rs` makes the groups, `store.rs` closes them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::time::Duration;

use crate::capacity::groups::store::GroupAt;
use crate::types::ExtentId;
use crate::types::GROUP_EXTENTS;
use crate::types::GroupId;
use crate::types::NodeId;

/// A writer deals its extents over at least this many groups, so that a slow member does not slow
/// down all of them.
const OPEN_MIN: usize = 2;
/// For how long the extents that a writer holds in reserve last, at its present rate. It needs no
/// coordinator for so long.
const RESERVE: Duration = Duration::from_secs(120);
/// The most groups that a writer holds.
const GROUPS_MAX: usize = 64;

/// The groups of one kind that a writer may create extents in.
#[derive(Debug, Default)]
pub struct Dealer {
    /// Groups with extents left, oldest first. Never one without.
    open: Vec<Open>,
    /// Groups without extents left, some of which are still to be created.
    used_up: Vec<Open>,
    /// When extents were dealt, in the last [`RESERVE`].
    dealt: VecDeque<Duration>,
}

/// A group that was not closed yet.
#[derive(Debug)]
struct Open {
    group: GroupAt,
    /// The extents that were not dealt yet.
    left: VecDeque<ExtentId>,
    /// The extents that were dealt, and whose creation was not answered yet.
    pending: BTreeSet<ExtentId>,
}

impl Open {
    /// How many of these nodes are members.
    fn shared(&self, nodes: &[NodeId]) -> usize {
        nodes.iter().filter(|node| self.group.record.has_member(**node)).count()
    }
}

/// An extent to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The extent.
    pub extent: ExtentId,
    /// The nodes that get a copy.
    pub members: Vec<NodeId>,
}

impl Dealer {
    /// Adds a new group, which was made for this writer. None of its extents was dealt before.
    pub fn add(&mut self, group: GroupAt) {
        let left = group.record.id().extents().collect();
        self.open.push(Open { group, left, pending: BTreeSet::new() });
    }

    /// How many of these nodes are members of the group that has the fewest of them and extents
    /// left; `None` if no group has.
    #[must_use]
    pub fn least_of(&self, avoid: &[NodeId]) -> Option<usize> {
        self.open.iter().map(|open| open.shared(avoid)).min()
    }

    /// Deals an extent at time `now`, by turns of the two oldest of the groups that have the fewest
    /// of the nodes in `avoid`. The others are in reserve. `None` if there is no extent left.
    pub fn deal(&mut self, now: Duration, avoid: &[NodeId]) -> Option<Dealt> {
        let least = self.least_of(avoid)?;
        let in_use = self.open.iter().enumerate().filter(|(_, open)| open.shared(avoid) == least);
        let most_left =
            in_use.take(OPEN_MIN).max_by_key(|(at, open)| (open.left.len(), Reverse(*at)));
        let (at, _) = most_left?;
        let open = self.open.get_mut(at)?;
        let extent = open.left.pop_front()?;
        open.pending.insert(extent);
        let members = open.group.record.members().to_vec();
        if open.left.is_empty() {
            let used_up = self.open.remove(at);
            self.used_up.push(used_up);
        }
        self.forget(now);
        if self.dealt.len() == GROUPS_MAX * EXTENTS {
            self.dealt.pop_front();
        }
        self.dealt.push_back(now);
        Some(Dealt { extent, members })
    }

    /// Notes that an extent was created, or that it never will be.
    pub fn created(&mut self, extent: ExtentId) {
        for open in self.open.iter_mut().chain(&mut self.used_up) {
            open.pending.remove(&extent);
        }
    }

    /// Deals no more extents of groups with this member, which is away or draining. Returns these
    /// groups, which are to be closed now. An extent of them that is just being created may be
    /// refused then: another one is dealt in its place.
    pub fn without_member(&mut self, node: NodeId) -> Vec<GroupId> {
        let mut closing = Vec::new();
        for groups in [&mut self.open, &mut self.used_up] {
            groups.retain(|open| {
                let stays = !open.group.record.has_member(node);
                if !stays {
                    closing.push(open.group.record.id());
                }
                stays
            });
        }
        closing
    }

    /// Deals no more extents of groups with fewer members. Returns these groups, which are to be
    /// closed now.
    pub fn with_fewer_members(&mut self, members: usize) -> Vec<GroupId> {
        let is_fewer = |open: &Open| open.group.record.members().len() < members;
        let closing = self.open.iter().filter(|open| is_fewer(open));
        let closing = closing.map(|open| open.group.record.id()).collect();
        self.open.retain(|open| !is_fewer(open));
        closing
    }

    /// The groups that are used up and are to be closed now: all their extents were created. If
    /// they were closed earlier, members would refuse the first append of the last ones.
    pub fn used_up(&mut self) -> Vec<GroupId> {
        let closing = |open: &Open| open.pending.is_empty();
        let closed = self.used_up.iter().filter(|open| closing(open));
        let closed = closed.map(|open| open.group.record.id()).collect();
        self.used_up.retain(|open| !closing(open));
        closed
    }

    /// How many groups are to be made, at time `now`: so many that the extents of all last for two
    /// minutes if as many are dealt as in the last two, and that one may be used up or closed, and
    /// two are left.
    pub fn wants(&mut self, now: Duration) -> usize {
        self.forget(now);
        let left: usize = self.open.iter().map(|open| open.left.len()).sum();
        let for_rate = self.dealt.len().saturating_sub(left).div_ceil(EXTENTS);
        let for_choice = (OPEN_MIN + 1).saturating_sub(self.open.len());
        for_rate.max(for_choice).min(GROUPS_MAX.saturating_sub(self.open.len()))
    }

    /// The members of the groups that extents are dealt of, for the choice of the next one's.
    #[must_use]
    pub fn members(&self) -> Vec<NodeId> {
        self.open.iter().flat_map(|open| open.group.record.members()).copied().collect()
    }

    fn forget(&mut self, now: Duration) {
        while self.dealt.front().is_some_and(|at| now.saturating_sub(*at) > RESERVE) {
            self.dealt.pop_front();
        }
    }
}

/// Extents of a group.
#[expect(clippy::cast_possible_truncation, reason = "it is 64")]
const EXTENTS: usize = GROUP_EXTENTS as usize;

#[cfg(test)]
mod tests;
