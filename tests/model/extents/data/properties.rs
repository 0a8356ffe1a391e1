//! What holds in every state, and what happens in some.

use super::*;

// The numbers are those of `../mod.rs`.
pub(super) const STAY: &str = "1 only faults take copies of what was answered";
pub(super) const ONE_END: &str = "2 ends of an extent are one";
pub(super) const WITHIN: &str = "3 nothing is answered past the end";
pub(super) const WHOLE: &str = "4 what is settled can be made whole";
pub(super) const NOBODY: &str = "5 what nobody had was never answered";
pub(super) const CLOSED: &str = "6 members of a group with open extents do not change";
pub(super) const REMOVED: &str = "7 gone extents stay removed";
pub(super) const FOUND: &str = "8 the record leads to what was answered";
pub(super) const DONE: &str = "9 where nothing more happens, all is done";

/// What holds in every state.
pub(super) const ALWAYS: [&str; 9] =
    [STAY, ONE_END, WITHIN, WHOLE, NOBODY, CLOSED, REMOVED, FOUND, DONE];

fn extents() -> std::ops::Range<usize> {
    0..EXTENTS
}

/// As many disks have an answered append as it was answered on, less those that lost it.
fn copies_stay(world: &World) -> bool {
    extents().filter(|extent| !world.record.gone[*extent]).all(|extent| {
        let written = &world.written[extent];
        (0..written.answered).all(|place| {
            let on = usize::from(written.on[usize::from(place)]);
            world.holders(extent, place) + world.losses(extent, place) >= on
        })
    })
}

/// Where an extent ends, by its record and by all copies that are sealed.
fn ends(world: &World, extent: usize) -> impl Iterator<Item = u8> {
    let by_copies = world.nodes.iter().filter_map(move |node| node.copies[extent].sealed());
    by_copies.chain(world.record.lengths[extent])
}

fn ends_are_one(world: &World) -> bool {
    extents().all(|extent| {
        let mut all = ends(world, extent);
        let first = all.next();
        all.all(|end| Some(end) == first)
    })
}

fn nothing_past_the_end(world: &World) -> bool {
    extents().all(|extent| {
        ends(world, extent).all(|end| {
            let short = world.nodes.iter().all(|node| {
                let copy = &node.copies[extent];
                copy.sealed().is_none() || copy.synced <= end
            });
            short && world.written[extent].answered <= end
        })
    })
}

/// While fewer copies are lost than an end was settled on, all bytes up to it are somewhere.
fn can_be_made_whole(world: &World) -> bool {
    extents().filter(|extent| !world.record.gone[*extent]).all(|extent| {
        let on = usize::from(world.settled_on[extent]);
        (0..world.record.lengths[extent].unwrap_or(0))
            .all(|place| world.holders(extent, place) > 0 || world.losses(extent, place) >= on)
    })
}

fn buried_is_empty(world: &World) -> bool {
    extents().all(|extent| !world.buried[extent] || world.written[extent].answered == 0)
}

/// While fewer copies are lost than there were, a member has it that is not lost.
fn record_leads(world: &World) -> bool {
    extents().filter(|extent| !world.record.gone[*extent]).all(|extent| {
        let written = &world.written[extent];
        (0..written.answered).all(|place| {
            let on = usize::from(written.on[usize::from(place)]);
            let found = world.members().any(|node| !node.dead && node.copies[extent].holds(place));
            found || world.losses(extent, place) >= on
        })
    })
}

fn removed_stays(world: &World) -> bool {
    world.nodes.iter().all(|node| {
        extents().all(|extent| !node.removed[extent] || node.copies[extent].is_absent())
    })
}

fn changes_are_of_closed(world: &World) -> bool {
    world.open_at_change.iter().all(|open| !open) && (!world.record.changed || world.record.closed)
}

/// Whether an extent has a copy of which this is true.
fn some_copy(world: &World, is: impl Fn(&Node, usize) -> bool) -> bool {
    world.nodes.iter().any(|node| extents().any(|extent| is(node, extent)))
}

fn some_written(world: &World, is: impl Fn(&Written, usize) -> bool) -> bool {
    extents().any(|extent| is(&world.written[extent], extent))
}

pub(super) const CUT: &str = "a longer copy is to be cut";
pub(super) const SHORT: &str = "a shorter copy has to pull";
pub(super) const BY_MANAGER: &str = "an unclean seal while the writer still writes";
pub(super) const TOO_LATE: &str = "a proposal of the writer comes second";
pub(super) const REFUSED: &str = "a late writer is refused a new extent";
pub(super) const LARGE: &str = "a large body is answered with a copy less";
pub(super) const LESS: &str = "an append is answered with one copy less";
pub(super) const AGAIN: &str = "a group has all copies again";
pub(super) const WAITS: &str = "an extent waits for a witness";
pub(super) const REPLACED: &str = "a member is replaced and its copy removed";
pub(super) const RETURNED: &str = "a node that is a member again takes a mark back";
pub(super) const MADE_GOOD: &str = "a lost member is replaced";
pub(super) const BURIED: &str = "an extent that nobody had is gone";
pub(super) const GONE: &str = "a gone extent is removed everywhere";
pub(super) const LAST: &str = "the end is settled by one copy that is left";

fn samples() -> Vec<Property<Bounds>> {
    vec![
        Property::sometimes(CUT, |_, world: &World| {
            some_copy(world, |node, extent| {
                let copy = &node.copies[extent];
                copy.is_unsettled()
                    && world.record.lengths[extent].is_some_and(|length| length < copy.synced)
            })
        }),
        Property::sometimes(SHORT, |_, world: &World| {
            some_copy(world, |node, extent| {
                let copy = &node.copies[extent];
                copy.sealed().is_some() && !copy.is_full() && copy.is_kept()
            })
        }),
        Property::sometimes(BY_MANAGER, |_, world: &World| {
            some_written(world, |written, extent| {
                written.stage == Stage::Writing && world.record.lengths[extent].is_some()
            })
        }),
        Property::sometimes(TOO_LATE, |_, world: &World| {
            some_written(world, |written, extent| {
                let longer = world.record.lengths[extent].is_some_and(|l| l > written.answered);
                written.stage == Stage::Proposed && longer
            })
        }),
        Property::sometimes(REFUSED, |_, world: &World| {
            some_copy(world, |node, extent| {
                let refuses = node.view.closed && node.copies[extent].is_absent();
                let open = world.targets().any(|n| n.copies[extent].phase == Phase::Open);
                refuses && open && node.target && !world.has_session()
            })
        }),
        Property::sometimes(LARGE, |bounds: &Bounds, world: &World| {
            some_written(world, |written, _| {
                (0..usize::from(written.answered))
                    .any(|place| usize::from(written.on[place]) < bounds.members)
            })
        }),
        Property::sometimes(LESS, |bounds: &Bounds, world: &World| {
            bounds.members < bounds.copies && some_written(world, |w, _| w.answered > 0)
        }),
    ]
}

fn samples_of_groups() -> Vec<Property<Bounds>> {
    vec![
        Property::sometimes(AGAIN, |bounds: &Bounds, world: &World| {
            let whole = world.members().filter(|node| node.copies[0].is_full()).count();
            bounds.members < bounds.copies && whole == bounds.copies
        }),
        Property::sometimes(WAITS, |_, world: &World| {
            let copies: Vec<_> = world.reached().map(|node| node.copies[0]).collect();
            let closed = copies.iter().all(|copy| copy.phase == Phase::Closed && copy.torn);
            closed && !copies.is_empty() && world.record.lengths[0].is_none()
        }),
        Property::sometimes(REPLACED, |_, world: &World| {
            let answered = world.written[0].answered > 0 && !world.record.gone[0];
            let removed = |node: &Node| {
                node.target && !node.member && !node.dead && node.copies[0].is_absent()
            };
            answered && world.nodes.iter().any(removed)
        }),
        Property::sometimes(RETURNED, |_, world: &World| {
            let marked = |node: &Node| node.member && node.copies[0].mark == Mark::Marked;
            world.record.changed && world.nodes.iter().any(marked)
        }),
        Property::sometimes(MADE_GOOD, |bounds: &Bounds, world: &World| {
            let full = world.reached().filter(|node| node.copies[0].is_full()).count();
            let lost = world.nodes.iter().any(|node| node.dead && !node.member);
            lost && full == bounds.copies && world.written[0].answered > 0
        }),
        Property::sometimes(BURIED, |_, world: &World| {
            extents().any(|extent| world.buried[extent] && world.written[extent].sent > 0)
        }),
        Property::sometimes(GONE, |_, world: &World| {
            let removed = |node: &Node| node.removed[0];
            world.targets().all(removed) && world.nodes.iter().all(|n| n.copies[0].is_absent())
        }),
        Property::sometimes(LAST, |_, world: &World| {
            let answered = world.written[0].answered > 0;
            let sealed = world.nodes.iter().filter(|node| node.copies[0].sealed().is_some());
            let dead = world.nodes.iter().filter(|node| node.target && node.dead).count();
            answered && sealed.count() == 1 && dead + 1 == world.targets().count()
        }),
    ]
}

pub(super) fn all() -> Vec<Property<Bounds>> {
    let mut all = vec![
        Property::always(STAY, |_: &Bounds, world: &World| copies_stay(world)),
        Property::always(ONE_END, |_: &Bounds, world: &World| ends_are_one(world)),
        Property::always(WITHIN, |_: &Bounds, world: &World| nothing_past_the_end(world)),
        Property::always(WHOLE, |_: &Bounds, world: &World| can_be_made_whole(world)),
        Property::always(NOBODY, |_: &Bounds, world: &World| buried_is_empty(world)),
        Property::always(CLOSED, |_: &Bounds, world: &World| changes_are_of_closed(world)),
        Property::always(REMOVED, |_: &Bounds, world: &World| removed_stays(world)),
        Property::always(FOUND, |_: &Bounds, world: &World| record_leads(world)),
        Property::always(DONE, rest::is_done_or_goes_on),
    ];
    all.extend(samples());
    all.extend(samples_of_groups());
    all
}
