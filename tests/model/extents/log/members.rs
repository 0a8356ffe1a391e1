//! What happens at members.

use super::steps::spend;
use super::*;

impl Bounds {
    /// An append arrives. It may be a repetition, and very late.
    pub(super) fn receive(&self, world: &mut World, node: usize, extent: usize) -> Option<()> {
        let sent = world.extents[extent].sent;
        let copy = &mut world.nodes[node].copies[extent];
        let takes = match copy.phase {
            Phase::Absent | Phase::Open => copy.end < sent,
            Phase::Closed | Phase::Sealed(_) => false,
        };
        if !takes {
            return None;
        }
        copy.append();
        if !self.tails {
            copy.sync();
        }
        Some(())
    }

    pub(super) fn adopt(world: &mut World, node: usize, extent: usize) -> Option<()> {
        let length = world.extents[extent].length?;
        let copy = &mut world.nodes[node].copies[extent];
        copy.is_unsettled().then(|| copy.seal(length))
    }

    pub(super) fn pull(world: &mut World, node: usize, extent: usize) -> Option<()> {
        let length = world.extents[extent].length?;
        let from = world.reached(extent).any(|from| from.copies[extent].is_full());
        let copy = &mut world.nodes[node].copies[extent];
        let needs = !copy.is_unsettled() && !copy.is_full();
        (from && needs).then(|| copy.pulled(length))
    }

    pub(super) fn crash(world: &mut World, node: usize, keeps: bool) -> Option<()> {
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

    pub(super) fn tear(world: &mut World, node: usize, extent: usize, proven: bool) -> Option<()> {
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

    pub(super) fn die(world: &mut World, node: usize) -> Option<()> {
        spend(&mut world.left.deaths)?;
        for extent in 0..EXTENTS {
            world.lose(extent, 0, world.nodes[node].copies[extent].synced);
        }
        let node = &mut world.nodes[node];
        (node.up, node.dead) = (false, true);
        // Its late answers may still come.
        node.copies.iter_mut().for_each(ExtentCopy::remove);
        Some(())
    }
}
