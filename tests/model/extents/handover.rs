//! A log is handed over in place: the new owner goes on in the same extent under the next epoch.
//!
//! It may when all members have taken its epoch and end alike; else it rolls, which is in `log`.
//! The old owner may be late with all that it sent. Here copies have contents, since two writers
//! write.

use super::walk::find;
use super::walk::walk;
use stateright::Model;
use stateright::Property;

const MEMBERS: usize = 3;
const PLACES: usize = 3;

/// A member's copy. A record is the epoch of its writer, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Member {
    epoch: u8,
    records: [u8; PLACES],
    end: u8,
    /// The greatest end answered to each writer.
    said: [u8; 2],
}

/// A writer of epoch 1 or 2. It sends the places from `base` to `sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Writer {
    base: u8,
    sent: u8,
    answered: u8,
    writes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    members: [Member; MEMBERS],
    writers: [Writer; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Send(usize),
    /// A member gets the next append of a writer, and syncs it.
    Receive(usize, usize),
    /// A member gets again what it has at its end.
    Repeat(usize, usize),
    Answer(usize),
    /// A member takes the new owner's epoch.
    Take(usize),
    /// The new owner goes on where the members end.
    GoOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It goes on when all members but one have taken its epoch.
    SomeTook,
    /// It goes on at the least end.
    LeastEnd,
    /// A repetition is known by its place, not by its bytes.
    RepetitionByPlace,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    faults: &'static [Fault],
}

impl Bounds {
    fn has(self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn receive(self, world: &mut World, member: usize, writer: usize) -> Option<()> {
        let Writer { base, sent, .. } = world.writers[writer];
        let epoch = if writer == 0 { 1 } else { 2 };
        let member = &mut world.members[member];
        if epoch < member.epoch || member.end < base || member.end >= sent {
            return None;
        }
        member.epoch = epoch;
        member.records[usize::from(member.end)] = epoch;
        member.end += 1;
        member.said[writer] = member.end;
        Some(())
    }

    fn repeat(self, world: &mut World, member: usize, writer: usize) -> Option<()> {
        let Writer { base, sent, .. } = world.writers[writer];
        let epoch = if writer == 0 { 1 } else { 2 };
        let member = &mut world.members[member];
        if epoch < member.epoch || member.end <= base || member.end > sent {
            return None;
        }
        let place = usize::from(member.end) - 1;
        let same = member.records[place] == epoch || self.has(Fault::RepetitionByPlace);
        same.then(|| member.said[writer] = member.said[writer].max(member.end))
    }

    fn go_on(self, world: &mut World) -> Option<()> {
        let took = || world.members.iter().filter(|member| member.epoch == 2);
        let less = usize::from(self.has(Fault::SomeTook));
        let (least, most) = (took().map(|m| m.end).min()?, took().map(|m| m.end).max()?);
        let alike = least == most || self.has(Fault::LeastEnd);
        if took().count() < MEMBERS - less || !alike || world.writers[1].writes {
            return None;
        }
        world.writers[1] = Writer { base: least, sent: least, answered: least, writes: true };
        Some(())
    }

    fn take(self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Send(writer) => {
                let writer = &mut world.writers[writer];
                let may = writer.writes && usize::from(writer.sent) < PLACES;
                may.then(|| writer.sent += 1)
            }
            Step::Receive(member, writer) => self.receive(world, member, writer),
            Step::Repeat(member, writer) => self.repeat(world, member, writer),
            Step::Answer(writer) => {
                let next = world.writers[writer].answered + 1;
                let all = world.members.iter().all(|member| member.said[writer] >= next);
                let may = next <= world.writers[writer].sent && all;
                may.then(|| world.writers[writer].answered = next)
            }
            Step::Take(member) => {
                world.members[member].epoch = 2;
                Some(())
            }
            Step::GoOn => self.go_on(world),
        }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let first = Writer { writes: true, ..Writer::default() };
        vec![World { members: [Member::default(); MEMBERS], writers: [first, Writer::default()] }]
    }

    fn actions(&self, _: &World, steps: &mut Vec<Step>) {
        for writer in 0..2 {
            steps.extend([Step::Send(writer), Step::Answer(writer)]);
            for member in 0..MEMBERS {
                steps.extend([Step::Receive(member, writer), Step::Repeat(member, writer)]);
            }
        }
        steps.extend((0..MEMBERS).map(Step::Take));
        steps.push(Step::GoOn);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        next.members.sort_unstable();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREE, |_, world: &World| {
                let [first, second, third] = &world.members;
                let pairs = [(first, second), (first, third), (second, third)];
                pairs.iter().all(|(a, b)| {
                    let both = usize::from(a.end.min(b.end));
                    a.records[..both] == b.records[..both]
                })
            }),
            Property::always(ONCE, |_, world: &World| {
                let [old, new] = world.writers;
                !new.writes || old.answered <= new.base
            }),
            Property::always(HELD, |_, world: &World| {
                let [old, new] = world.writers;
                let written = |place: u8| if place < new.base || !new.writes { 1 } else { 2 };
                (0..old.answered.max(new.answered)).all(|place| {
                    let at = usize::from(place);
                    let has = |m: &Member| m.end > place && m.records[at] == written(place);
                    world.members.iter().all(has)
                })
            }),
            Property::sometimes(BOTH, |_, world: &World| {
                let [old, new] = world.writers;
                old.answered > 0 && new.answered > new.base && new.base > 0
            }),
            Property::sometimes(ROLLS, |_, world: &World| {
                let all = world.members.iter().all(|member| member.epoch == 2);
                all && world.members[0].end != world.members[MEMBERS - 1].end
            }),
        ]
    }
}

const AGREE: &str = "copies agree where both have bytes";
const ONCE: &str = "the new owner goes on after all that was answered";
const HELD: &str = "what was answered is at all members";
const BOTH: &str = "both owners answer in one extent";
const ROLLS: &str = "members end apart, and the new owner has to roll";

#[test]
fn a_log_is_handed_over() {
    walk("handover", Bounds { faults: &[] }, &[AGREE, ONCE, HELD], &[BOTH, ROLLS]);
}

#[test]
fn a_member_that_did_not_take_the_epoch() {
    find(Fault::SomeTook, Bounds { faults: &[Fault::SomeTook] }, AGREE);
}

#[test]
fn members_that_end_apart() {
    find(Fault::LeastEnd, Bounds { faults: &[Fault::LeastEnd] }, AGREE);
}

#[test]
fn a_repetition_with_other_bytes() {
    let faults = &[Fault::LeastEnd, Fault::RepetitionByPlace];
    find(Fault::RepetitionByPlace, Bounds { faults }, HELD);
}
