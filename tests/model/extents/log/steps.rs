//! Which steps may be next. A step that cannot be taken changes nothing.

use super::*;

impl Bounds {
    pub(super) fn candidates(&self, world: &World, steps: &mut Vec<Step>) {
        for host in 0..world.hosts.len() {
            steps.push(Step::Claim(host));
            match world.hosts[host].stage {
                Stage::Idle => {}
                Stage::Claimed => {
                    steps.extend((0..self.nodes).map(|node| Step::Fence(host, node)));
                    steps.extend((0..self.nodes).map(|node| Step::Level(host, node)));
                    steps.extend([Step::Settle(host), Step::Replay(host)]);
                }
                Stage::Replayed => {
                    steps.extend(self.places(world).map(|on| Step::Resume(host, on)));
                }
                Stage::Serving => {
                    steps.extend([Step::Send(host), Step::Answer(host)]);
                    steps.extend(self.places(world).map(|on| Step::Roll(host, on)));
                }
                Stage::Rolling(..) => {
                    steps.extend([Step::Send(host), Step::Answer(host)]);
                    steps.extend([Step::Arrive(host), Step::Fail(host), Step::Learn(host)]);
                }
            }
        }
        for node in 0..world.nodes.len() {
            // Of equal nodes one is enough.
            if node == 0 || world.nodes[node] != world.nodes[node - 1] {
                Self::candidates_at(world, node, steps);
            }
        }
    }

    /// The sets of nodes that a new extent may be on. One copy less if a node is missing.
    fn places(&self, world: &World) -> impl Iterator<Item = u8> {
        let up: u8 = (0..self.nodes).filter(|n| world.nodes[*n].up).map(|n| 1 << n).sum();
        let there = up.count_ones() as usize;
        let enough = there > 0 && there + 1 >= self.copies;
        let count = there.min(self.copies);
        (1..=up).filter(move |on| enough && on & !up == 0 && on.count_ones() as usize == count)
    }

    fn candidates_at(world: &World, at: usize, steps: &mut Vec<Step>) {
        let node = &world.nodes[at];
        if node.dead {
            return;
        }
        if !node.up {
            steps.push(Step::Return(at));
            return;
        }
        for extent in (0..EXTENTS).filter(|extent| node.member[*extent]) {
            steps.extend([
                Step::Receive(at, extent),
                Step::Sync(at, extent),
                Step::Repeat(at, extent),
                Step::Adopt(at, extent),
                Step::Pull(at, extent),
                Step::Tear(at, extent, true),
                Step::Tear(at, extent, false),
            ]);
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
            Step::Send(host) => self.send(world, host),
            Step::Receive(node, extent) => self.receive(world, node, extent),
            Step::Sync(node, extent) => {
                let copy = &mut world.nodes[node].copies[extent];
                copy.is_unsettled().then(|| copy.sync())
            }
            Step::Repeat(node, extent) => {
                world.nodes[node].copies[extent].repeat();
                Some(())
            }
            Step::Answer(host) => self.answer(world, host),
            Step::Roll(host, on) => self.roll(world, host, on),
            Step::Arrive(host) => self.arrive(world, host),
            Step::Fail(host) => Self::fail(world, host),
            Step::Learn(host) => Self::learn(world, host),
            Step::Claim(host) => Self::claim(world, host),
            Step::Fence(host, node) => self.fence(world, host, node),
            Step::Level(host, node) => Self::level(world, host, node),
            Step::Settle(host) => self.settle(world, host),
            Step::Adopt(node, extent) => Self::adopt(world, node, extent),
            Step::Pull(node, extent) => Self::pull(world, node, extent),
            Step::Replay(host) => self.replay(world, host),
            Step::Resume(host, on) => Self::resume(world, host, on),
            Step::Silence(node) => {
                spend(&mut world.left.silences)?;
                world.nodes[node].up = false;
                Some(())
            }
            Step::Crash(node, keeps) => Self::crash(world, node, keeps),
            Step::Tear(node, extent, proven) => Self::tear(world, node, extent, proven),
            Step::Die(node) => Self::die(world, node),
            Step::Return(node) => {
                world.nodes[node].up = true;
                Some(())
            }
        }
    }
}

/// Takes one of what is left.
pub(super) fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}
