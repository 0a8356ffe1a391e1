//! Where nothing more happens, all is done.

use super::*;

/// Whether an extent is gone, or whole at all members that are not lost, or has lost bytes.
fn is_done(world: &World, extent: usize) -> bool {
    let lost = world.losses.iter().any(|loss| loss.extent == number(extent));
    let mut members = world.members().filter(|node| !node.dead);
    let gone = world.record.gone[extent];
    gone || lost || members.all(|node| node.copies[extent].is_full())
}

/// Whether a world in which no step is possible is done. A step may be possible again and again.
pub(super) fn is_done_or_goes_on(bounds: &Bounds, world: &World) -> bool {
    let rests = world.record.closed
        && !world.has_session()
        && world.nodes.iter().all(|node| node.up || node.dead);
    if !rests || (0..bounds.extents).all(|extent| is_done(world, extent)) {
        return true;
    }
    let mut steps = Vec::new();
    bounds.actions(world, &mut steps);
    steps.into_iter().any(|step| bounds.next_state(world, step).is_some())
}
