//! Where nothing more happens, the partition serves.

use super::*;

/// Whether the named host has all that it can need: extents to go on in, and of each extent of the
/// log fewer losses than copies.
fn can_serve(bounds: &Bounds, world: &World) -> bool {
    let nodes = world.nodes.iter().filter(|node| node.up).count();
    let kept = |extent: usize| {
        let Extent { length, settled_on, .. } = world.extents[extent];
        let members = world.members(extent).count();
        let copies = length.map_or(members, |_| usize::from(settled_on));
        let lost = world.losses.iter().filter(|loss| usize::from(loss.extent) == extent).count();
        let dead = world.members(extent).filter(|node| node.dead).count();
        length == Some(0) || (lost < copies && dead < members)
    };
    let kept = world.descriptor.extents().all(kept);
    kept && nodes > 0 && nodes + 1 >= bounds.copies && usize::from(world.next.0) < EXTENTS
}

/// Whether a world in which no step is possible is one in which the named host serves.
pub(super) fn serves_or_goes_on(bounds: &Bounds, world: &World) -> bool {
    let waits = match world.hosts[usize::from(world.descriptor.host)].stage {
        Stage::Claimed | Stage::Replayed => true,
        Stage::Idle | Stage::Serving | Stage::Rolling(..) => false,
    };
    let rests = world.nodes.iter().all(|node| node.up || node.dead);
    if !rests || !waits || !can_serve(bounds, world) {
        return true;
    }
    let mut steps = Vec::new();
    bounds.actions(world, &mut steps);
    steps.into_iter().any(|step| bounds.next_state(world, step).is_some())
}
