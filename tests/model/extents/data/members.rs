//! What the manager and the nodes do: settle, close, change members, remove.

use super::steps::spend;
use super::*;

impl Bounds {
    pub(super) fn follow(world: &mut World, node: usize) -> Option<()> {
        let record = world.record;
        let node = &mut world.nodes[node];
        node.view = View { member: node.member, closed: record.closed, gone: record.gone };
        Some(())
    }

    /// A first append needs all members. One that has nothing and takes no new extents is enough.
    pub(super) fn bury(&self, world: &mut World, extent: usize) -> Option<()> {
        let never = world
            .reached()
            .any(|node| node.view.member && node.view.closed && node.copies[extent].is_absent());
        let early = !world.record.changed || self.has(Fault::BuryAfterChange);
        if !world.record.closed || !never || !early || world.is_settled(extent) {
            return None;
        }
        (world.record.gone[extent], world.buried[extent]) = (true, true);
        Some(())
    }

    /// Its owner asks for it: no row names a byte of it.
    pub(super) fn free(world: &mut World, extent: usize) -> Option<()> {
        let writes = match world.written[extent].stage {
            Stage::Unused | Stage::Writing | Stage::Large => true,
            Stage::Clean | Stage::GivenUp | Stage::Proposed => false,
        };
        if writes || !world.is_settled(extent) || world.record.gone[extent] {
            return None;
        }
        spend(&mut world.left.frees)?;
        world.record.gone[extent] = true;
        Some(())
    }

    pub(super) fn fence(&self, world: &mut World, node: usize, extent: usize) -> Option<()> {
        if world.has_session() || !world.nodes[node].member {
            return None;
        }
        let sync = !self.has(Fault::FenceUnsynced);
        let copy = world.copy(node, extent)?;
        (copy.phase == Phase::Open).then(|| copy.fence(sync))
    }

    pub(super) fn level(world: &mut World, node: usize, extent: usize) -> Option<()> {
        if world.has_session() || world.is_settled(extent) || !world.nodes[node].member {
            return None;
        }
        let witnesses = world.fenced(extent).filter(|copy| copy.is_witness());
        let end = witnesses.map(|copy| copy.end).max()?;
        let copy = world.copy(node, extent)?;
        (copy.phase == Phase::Closed && copy.end < end).then(|| copy.level(end))
    }

    /// The manager proposes the greatest end of the members that it has fenced, which all have now.
    pub(super) fn settle(&self, world: &mut World, extent: usize) -> Option<()> {
        if world.has_session() || world.is_settled(extent) {
            return None;
        }
        let torn = self.has(Fault::TornWitness);
        let witnesses = || world.fenced(extent).filter(|copy| copy.is_witness() || torn);
        if witnesses().all(|copy| copy.lied) {
            // A disk that lies is never the only witness.
            return None;
        }
        let least = self.has(Fault::LeastEnd);
        let ends = witnesses().map(|copy| copy.end);
        let end = if least { ends.min() } else { ends.max() }?;
        let level = world.fenced(extent).all(|copy| copy.end >= end);
        if !level && !self.has(Fault::NotLevelled) {
            return None;
        }
        world.settled_on[extent] = number(world.fenced(extent).count());
        world.record.lengths[extent] = Some(end);
        Some(())
    }

    /// The ends that a node may be told: by the record, by another member, by the writer.
    pub(super) fn adopt(
        &self,
        world: &mut World,
        node: usize,
        extent: usize,
        end: u8,
    ) -> Option<()> {
        let Written { stage, answered, .. } = world.written[extent];
        let told = match stage {
            Stage::Clean => true,
            Stage::Proposed => self.has(Fault::NoRecord),
            Stage::Unused | Stage::Writing | Stage::GivenUp | Stage::Large => false,
        };
        let by_record = world.record.lengths[extent] == Some(end);
        let by_writer = world.nodes[node].target && told && answered == end;
        let by_member = world.reached().any(|other| other.copies[extent].sealed() == Some(end));
        if !by_record && !by_writer && !by_member {
            return None;
        }
        let copy = world.copy(node, extent)?;
        (copy.is_unsettled() && copy.is_kept()).then(|| copy.seal(end))
    }

    /// A pull learns the end first. Until it has all bytes the copy is no witness.
    pub(super) fn pull(&self, world: &mut World, node: usize, extent: usize) -> Option<()> {
        let from = world.reached().find(|from| from.copies[extent].is_full());
        // For no bytes nobody is needed.
        let empty = world.record.lengths[extent].filter(|length| *length == 0);
        let end = empty.or_else(|| from?.copies[extent].sealed())?;
        let Node { member, view, .. } = world.nodes[node];
        let copy = world.copy(node, extent)?;
        if !member || !view.member || view.gone[extent] || !copy.is_kept() || copy.is_full() {
            return None;
        }
        match copy.phase {
            Phase::Absent if self.has(Fault::PullIsWitness) => copy.phase = Phase::Closed,
            Phase::Absent => copy.phase = Phase::Sealed(end),
            Phase::Sealed(_) => copy.pulled(end),
            Phase::Open | Phase::Closed => return None,
        }
        Some(())
    }

    /// Only a closed group without open extents changes members.
    fn may_change(&self, world: &World) -> bool {
        let settled = (0..self.extents).all(|extent| world.is_settled(extent));
        (world.record.closed && settled) || self.has(Fault::MemberInOpen)
    }

    fn change(&self, world: &mut World, node: usize, member: bool) {
        for extent in 0..self.extents {
            let sealed = world.nodes.iter().any(|node| node.copies[extent].sealed().is_some());
            let lost = world.losses.iter().any(|loss| loss.extent == number(extent));
            world.open_at_change[extent] |= !world.is_settled(extent) && !sealed && !lost;
        }
        world.record.changed = true;
        if !self.has(Fault::LeaveUncompared) {
            // Transactions compare the record.
            world.nodes.iter_mut().for_each(|node| node.leaving = false);
        }
        world.nodes[node].leaving = false;
        world.nodes[node].member = member;
    }

    pub(super) fn join(&self, world: &mut World, node: usize) -> Option<()> {
        if world.nodes[node].member || !self.may_change(world) {
            return None;
        }
        spend(&mut world.left.joins)?;
        self.change(world, node, true);
        Some(())
    }

    /// Whether all members of a kind answer and have all bytes.
    fn are_whole(&self, world: &World, of: impl Fn(usize) -> bool) -> bool {
        let kept = |extent: &usize| !world.record.gone[*extent] && world.is_settled(*extent);
        world.nodes.iter().enumerate().all(|(number, node)| {
            let mut extents = (0..self.extents).filter(kept);
            let has_all = extents.all(|extent| {
                let copy = node.copies[extent];
                copy.is_full() || (self.has(Fault::OldReport) && copy.unmarked().is_full())
            });
            !node.member || !of(number) || (node.up && has_all)
        })
    }

    /// A member leaves when all others have all bytes, and there are enough of them.
    pub(super) fn may_leave(&self, world: &mut World, node: usize) -> Option<()> {
        if !world.nodes[node].member || !self.may_change(world) {
            return None;
        }
        let have_all = self.are_whole(world, |other| other != node);
        if !have_all || world.members().count() <= self.copies {
            return None;
        }
        world.nodes[node].leaving = true;
        Some(())
    }

    pub(super) fn leave(&self, world: &mut World, node: usize) -> Option<()> {
        if !world.nodes[node].leaving {
            return None;
        }
        self.change(world, node, false);
        Some(())
    }

    pub(super) fn swap(&self, world: &mut World, out: usize, into: usize) -> Option<()> {
        if !world.nodes[out].member || world.nodes[into].member || !self.may_change(world) {
            return None;
        }
        spend(&mut world.left.joins)?;
        self.change(world, out, false);
        self.change(world, into, true);
        Some(())
    }

    pub(super) fn mark(world: &mut World, node: usize, extent: usize) -> Option<()> {
        let view = world.nodes[node].view;
        let copy = world.copy(node, extent)?;
        let surplus = !view.member && !copy.is_absent() && copy.is_kept();
        surplus.then(|| copy.mark = Mark::Marked)
    }

    pub(super) fn read_again(&self, world: &mut World, node: usize, extent: usize) -> Option<()> {
        let Node { member, view, .. } = world.nodes[node];
        let whole = self.are_whole(world, |_| true);
        let still = if self.has(Fault::OldRecord) { view.member } else { member };
        let still = still || (self.has(Fault::SwapAndKeep) && !whole);
        let copy = world.copy(node, extent)?;
        let mark = if still { Mark::Kept } else { Mark::Doomed };
        (copy.mark == Mark::Marked).then(|| copy.mark = mark)
    }

    pub(super) fn drop_surplus(world: &mut World, node: usize, extent: usize) -> Option<()> {
        let copy = world.copy(node, extent)?;
        (copy.mark == Mark::Doomed).then(|| copy.remove())
    }

    pub(super) fn remove(world: &mut World, node: usize, extent: usize) -> Option<()> {
        if !world.nodes[node].view.gone[extent] {
            return None;
        }
        let copy = world.copy(node, extent)?;
        if copy.is_absent() {
            return None;
        }
        copy.remove();
        world.nodes[node].removed[extent] = true;
        Some(())
    }
}
