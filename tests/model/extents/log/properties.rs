//! What holds in every state, and what happens in some.

use super::*;

// The numbers are those of `../mod.rs`.
pub(super) const STAY: &str = "1 only faults take copies of what was answered";
pub(super) const ONE_END: &str = "2 ends of an extent are one";
pub(super) const WHOLE: &str = "4 what is settled can be made whole";
pub(super) const FOUND: &str = "10 the next owner finds every acknowledged record";
pub(super) const SHOWN: &str = "11 the owner shows every acknowledged record";
pub(super) const IN_ORDER: &str = "12 a log is replayed in order, nothing twice";
pub(super) const SERVES: &str = "13 where nothing more happens, the partition serves";

/// What holds in every state.
pub(super) const ALWAYS: [&str; 7] = [STAY, ONE_END, WHOLE, FOUND, SHOWN, IN_ORDER, SERVES];

/// Of each acknowledged record that is in the log, as many disks have it as it was answered on,
/// less those that lost it.
fn copies_stay(world: &World) -> bool {
    world.log().all(|(extent, place)| {
        let on = usize::from(world.extents[extent].on[usize::from(place)]);
        let acknowledged = world.acknowledged & (1 << world.record(extent, place)) != 0;
        let on = if acknowledged { on } else { 0 };
        world.holders(extent, place) + world.losses(extent, place) >= on
    })
}

fn ends_are_one(world: &World) -> bool {
    (0..EXTENTS).all(|extent| {
        world.nodes.iter().all(|node| {
            let copy = &node.copies[extent];
            let sealed = copy.sealed();
            sealed.is_none()
                || (sealed == world.extents[extent].length && Some(copy.synced) <= sealed)
        })
    })
}

/// While fewer copies are lost than an end was settled on, all records up to it are somewhere.
fn can_be_made_whole(world: &World) -> bool {
    world.descriptor.extents().all(|extent| {
        let Extent { length, settled_on, .. } = world.extents[extent];
        (0..length.unwrap_or(0)).all(|place| {
            let lost = world.losses(extent, place);
            world.holders(extent, place) > 0 || lost >= usize::from(settled_on)
        })
    })
}

fn found(world: &World) -> Records {
    world.log().fold(0, |found, (extent, place)| found | 1 << world.record(extent, place))
}

fn shown(world: &World) -> bool {
    let named = &world.hosts[usize::from(world.descriptor.host)];
    let serves = match named.stage {
        Stage::Serving | Stage::Rolling(..) => named.seen.epoch == world.descriptor.epoch,
        Stage::Idle | Stage::Claimed | Stage::Replayed => false,
    };
    !serves || world.acknowledged & !named.rows == 0
}

fn in_order(world: &World) -> bool {
    let records: Vec<_> = world.log().map(|(extent, place)| world.record(extent, place)).collect();
    records.is_sorted_by(|before, after| before < after)
}

pub(super) const LAST: &str = "a takeover with one member left";
pub(super) const UNANSWERED: &str = "a new owner finds what was never answered";
pub(super) const LATE: &str = "a late owner is refused";
pub(super) const RESENT: &str = "what a roll sent again is answered";
pub(super) const EMPTY: &str = "a takeover of an extent that nobody has";
pub(super) const WAITS: &str = "a takeover waits for a witness";
pub(super) const LESS: &str = "a record is answered with one copy less";
pub(super) const BOTH: &str = "a record is answered while a roll's outcome is unknown";
pub(super) const AGAIN: &str = "a host takes over what was taken from it";

fn samples() -> Vec<Property<Bounds>> {
    vec![
        Property::sometimes(LAST, |_, world: &World| {
            let up = world.nodes.iter().filter(|node| node.up).count();
            let replayed = world.hosts[1].stage == Stage::Replayed;
            up == 1 && replayed && world.acknowledged != 0
        }),
        Property::sometimes(UNANSWERED, |_, world: &World| {
            let host = &world.hosts[1];
            host.stage == Stage::Replayed && host.rows & !world.acknowledged != 0
        }),
        Property::sometimes(LATE, |_, world: &World| {
            let late = &world.hosts[0];
            let refused = matches!(late.stage, Stage::Rolling(_, _, Outcome::Refused));
            refused && world.hosts[1].stage == Stage::Serving
        }),
        Property::sometimes(RESENT, |_, world: &World| {
            let first = &world.extents[0];
            let again = |place: u8| first.records[usize::from(place)];
            first.answered < first.sent
                && world.descriptor.log[1]
                && world.extents[1].answered > 0
                && world.extents[1].records[0] == again(first.answered)
        }),
        Property::sometimes(EMPTY, |_, world: &World| {
            let newest = world.descriptor.newest();
            let replayed = world.hosts[1].stage == Stage::Replayed;
            newest > 0 && replayed && world.extents[newest].length == Some(0)
        }),
    ]
}

fn samples_of_faults() -> Vec<Property<Bounds>> {
    vec![
        Property::sometimes(WAITS, |_, world: &World| {
            let extent = world.descriptor.newest();
            let claimed = world.hosts[1].stage == Stage::Claimed;
            let mut copies = world.reached(extent).map(|node| node.copies[extent]).peekable();
            let some = copies.peek().is_some();
            let torn = copies.all(|copy| copy.phase == Phase::Closed && copy.torn);
            claimed && some && torn && world.extents[extent].length.is_none()
        }),
        Property::sometimes(LESS, |bounds: &Bounds, world: &World| {
            world.extents.iter().any(|extent| {
                let on = usize::from(extent.on[0]);
                extent.answered > 0 && extent.length.is_none() && on < bounds.copies
            })
        }),
        Property::sometimes(BOTH, |_, world: &World| {
            world.hosts.iter().any(|host| match host.stage {
                Stage::Rolling(next, ..) => world.extents[usize::from(next)].answered > 0,
                Stage::Idle | Stage::Claimed | Stage::Replayed | Stage::Serving => false,
            })
        }),
        Property::sometimes(AGAIN, |_, world: &World| {
            let again = world.descriptor.epoch > 2 && world.hosts[0].stage == Stage::Serving;
            again && world.hosts[0].seen.epoch > 2 && world.acknowledged != 0
        }),
    ]
}

pub(super) fn all() -> Vec<Property<Bounds>> {
    let mut all = vec![
        Property::always(STAY, |_: &Bounds, world: &World| copies_stay(world)),
        Property::always(ONE_END, |_: &Bounds, world: &World| ends_are_one(world)),
        Property::always(WHOLE, |_: &Bounds, world: &World| can_be_made_whole(world)),
        Property::always(FOUND, |_: &Bounds, world: &World| {
            world.acknowledged & !found(world) == 0
        }),
        Property::always(SHOWN, |_: &Bounds, world: &World| shown(world)),
        Property::always(IN_ORDER, |_: &Bounds, world: &World| in_order(world)),
        Property::always(SERVES, rest::serves_or_goes_on),
    ];
    all.extend(samples());
    all.extend(samples_of_faults());
    all
}
