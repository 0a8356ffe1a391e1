//! Which steps may be next. A step that cannot be taken changes nothing.

use super::*;

impl Bounds {
    pub(super) fn candidates(&self, world: &World, steps: &mut Vec<Step>) {
        for extent in 0..self.extents {
            steps.extend([
                Step::Send(extent),
                Step::Answer(extent),
                Step::Roll(extent),
                Step::RollLarge(extent),
                Step::Propose(extent),
                Step::Bury(extent),
                Step::Free(extent),
                Step::Settle(extent),
            ]);
        }
        steps.extend([Step::SessionEnds, Step::Close]);
        for node in 0..world.nodes.len() {
            // Of equal nodes one is enough.
            if node == 0 || world.nodes[node] != world.nodes[node - 1] {
                self.candidates_at(world, node, steps);
            }
        }
    }

    fn candidates_at(&self, world: &World, at: usize, steps: &mut Vec<Step>) {
        let node = &world.nodes[at];
        if node.dead {
            steps.extend([Step::MayLeave(at), Step::Leave(at)]);
            return;
        }
        if !node.up {
            steps.extend([Step::Return(at), Step::MayLeave(at), Step::Leave(at)]);
            return;
        }
        steps.extend([Step::Follow(at), Step::Join(at), Step::MayLeave(at), Step::Leave(at)]);
        if self.has(Fault::SwapAtOnce) || self.has(Fault::SwapAndKeep) {
            steps.extend((0..world.nodes.len()).map(|out| Step::Swap(out, at)));
        }
        for extent in 0..self.extents {
            steps.extend([
                Step::Receive(at, extent),
                Step::Sync(at, extent),
                Step::Repeat(at, extent),
                Step::Fence(at, extent),
                Step::Level(at, extent),
                Step::Pull(at, extent),
                Step::Mark(at, extent),
                Step::ReadAgain(at, extent),
                Step::Drop(at, extent),
                Step::Remove(at, extent),
            ]);
            for end in 0..=self.places {
                steps.push(Step::Adopt(at, extent, end));
            }
            steps.extend([Step::Tear(at, extent, true), Step::Tear(at, extent, false)]);
        }
        steps.extend([
            Step::Silence(at),
            Step::Crash(at, true),
            Step::Crash(at, false),
            Step::Die(at),
        ]);
    }

    /// Takes a step, or nothing if it is not possible now.
    pub(super) fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Send(extent) => self.send(world, extent),
            Step::Receive(node, extent) => self.receive(world, node, extent),
            Step::Sync(node, extent) => {
                let copy = world.copy(node, extent)?;
                copy.is_unsettled().then(|| copy.sync())
            }
            Step::Repeat(node, extent) => {
                world.nodes[node].copies[extent].repeat();
                Some(())
            }
            Step::Answer(extent) => self.answer(world, extent),
            Step::Roll(extent) => Self::roll(world, extent),
            Step::RollLarge(extent) => Self::roll_large(world, extent),
            Step::Propose(extent) => self.propose(world, extent),
            Step::SessionEnds => spend(&mut world.left.ends),
            Step::Close => {
                world.record.closed = true;
                Some(())
            }
            Step::Follow(node) => Self::follow(world, node),
            Step::Bury(extent) => self.bury(world, extent),
            Step::Free(extent) => Self::free(world, extent),
            Step::Fence(node, extent) => self.fence(world, node, extent),
            Step::Level(node, extent) => Self::level(world, node, extent),
            Step::Settle(extent) => self.settle(world, extent),
            Step::Adopt(node, extent, end) => self.adopt(world, node, extent, end),
            Step::Pull(node, extent) => self.pull(world, node, extent),
            Step::Join(node) => self.join(world, node),
            Step::MayLeave(node) => self.may_leave(world, node),
            Step::Leave(node) => self.leave(world, node),
            Step::Swap(out, into) => self.swap(world, out, into),
            Step::Mark(node, extent) => Self::mark(world, node, extent),
            Step::ReadAgain(node, extent) => self.read_again(world, node, extent),
            Step::Drop(node, extent) => Self::drop_surplus(world, node, extent),
            Step::Remove(node, extent) => Self::remove(world, node, extent),
            Step::Silence(node) => {
                spend(&mut world.left.silences)?;
                world.nodes[node].up = false;
                Some(())
            }
            Step::Crash(node, keeps) => Self::crash(world, node, keeps),
            Step::Tear(node, extent, proven) => Self::tear(world, node, extent, proven),
            Step::Die(node) => self.die(world, node),
            Step::Return(node) => {
                world.nodes[node].up = true;
                Some(())
            }
        }
    }

    fn crash(world: &mut World, node: usize, keeps: bool) -> Option<()> {
        let unsynced = world.nodes[node].copies.iter().any(|copy| copy.end > copy.synced);
        if keeps && !unsynced {
            return None;
        }
        spend(&mut world.left.crashes)?;
        let node = &mut world.nodes[node];
        node.up = false;
        node.copies.iter_mut().for_each(|copy| copy.restart(keeps));
        Some(())
    }

    fn tear(world: &mut World, node: usize, extent: usize, proven: bool) -> Option<()> {
        let copy = world.nodes[node].copies[extent];
        if copy.synced == 0 {
            return None;
        }
        spend(if proven { &mut world.left.tears } else { &mut world.left.lies })?;
        world.lose(extent, copy.synced - 1, copy.synced);
        let node = &mut world.nodes[node];
        node.up = false;
        for (number, copy) in node.copies.iter_mut().enumerate() {
            if number == extent {
                copy.tear(proven);
            } else {
                copy.restart(false);
            }
        }
        Some(())
    }

    fn die(&self, world: &mut World, node: usize) -> Option<()> {
        spend(&mut world.left.deaths)?;
        for extent in 0..self.extents {
            world.lose(extent, 0, world.nodes[node].copies[extent].synced);
        }
        let node = &mut world.nodes[node];
        (node.up, node.dead) = (false, true);
        // Its late answers may still come.
        node.copies.iter_mut().for_each(ExtentCopy::remove);
        Some(())
    }
}

/// Takes one of what is left.
pub(super) fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}
