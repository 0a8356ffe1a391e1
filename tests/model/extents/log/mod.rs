//! The log of one partition: appends, rolls by transaction, takeover by another host.
//!
//! Two hosts, which never learn that they are deposed but by a refusal. A host that crashes is one
//! that takes no further step. Nodes are alike, so states are sorted by node.

mod faults;
mod hosts;
mod members;
mod properties;
mod rest;
mod steps;
mod tests;

use super::copy::ExtentCopy;
use super::copy::Loss;
use super::copy::Phase;
use super::copy::number;
use stateright::Model;
use stateright::Property;

/// Extents that a log of this model has at most.
const EXTENTS: usize = 4;
/// Records that an extent takes at most.
const PLACES: usize = 3;

/// Records, by number, as bits.
type Records = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    up: bool,
    /// Its disk is gone. It never comes back.
    dead: bool,
    /// The extents of whose groups it is a member.
    member: [bool; EXTENTS],
    copies: [ExtentCopy; EXTENTS],
}

/// An extent, as its writer and its group's record know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Extent {
    /// What was sent to its members, in order.
    records: [u8; PLACES],
    sent: u8,
    answered: u8,
    /// Its length in the record.
    length: Option<u8>,
    /// On how many copies it was when its length was recorded. Only properties look at it.
    settled_on: u8,
    /// On how many copies each record was when it was answered, or served by a new owner. Only
    /// properties look at it.
    on: [u8; PLACES],
}

impl Extent {
    fn push(&mut self, record: u8) {
        self.records[usize::from(self.sent)] = record;
        self.sent += 1;
    }

    fn is_full(&self) -> bool {
        usize::from(self.sent) == PLACES
    }
}

/// What the coordinator holds of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Descriptor {
    epoch: u8,
    host: u8,
    /// The extents of the log, which are numbered in its order.
    log: [bool; EXTENTS],
}

impl Descriptor {
    const FIRST: Self = Self { epoch: 1, host: 0, log: [true, false, false, false] };

    fn extents(&self) -> impl Iterator<Item = usize> {
        let log = self.log;
        (0..EXTENTS).filter(move |extent| log[*extent])
    }

    fn newest(&self) -> usize {
        self.extents().last().unwrap_or(0)
    }
}

/// What a host knows of the transaction of its roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Outcome {
    /// It is on its way.
    Sent,
    /// It was carried out; the answer is on its way.
    Done,
    /// The descriptor was not what it was; the answer is on its way.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Idle,
    /// Claimed, not yet replayed.
    Claimed,
    /// Replayed; needs an extent of its own to write to.
    Replayed,
    Serving,
    /// A roll's transaction has no known outcome: the next extent, and the length of the last.
    Rolling(u8, u8, Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Host {
    /// The descriptor as it knows it.
    seen: Descriptor,
    stage: Stage,
    rows: Records,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Left {
    records: u8,
    rolls: u8,
    claims: u8,
    /// Crashes of nodes, with the loss of what was not synced.
    crashes: u8,
    /// Nodes that do not answer for a while.
    silences: u8,
    /// Copies that lose a synced append in a power cut, and know it.
    tears: u8,
    /// The same, but nothing proves it.
    lies: u8,
    /// Nodes whose disk is lost.
    deaths: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    descriptor: Descriptor,
    extents: [Extent; EXTENTS],
    nodes: Vec<Node>,
    hosts: [Host; 2],
    /// The number of the next extent, and of the next record.
    next: (u8, u8),
    acknowledged: Records,
    left: Left,
    losses: Vec<Loss>,
}

/// A step; hosts, nodes and extents are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// A host sends a record to all members.
    Send(usize),
    /// A member writes what was sent.
    Receive(usize, usize),
    /// A member syncs, and answers.
    Sync(usize, usize),
    /// A member answers a repetition of what it has.
    Repeat(usize, usize),
    /// A host has heard all members, and answers.
    Answer(usize),
    /// A host sends the transaction of a roll: the next extent is on these nodes.
    Roll(usize, u8),
    /// The transaction arrives.
    Arrive(usize),
    /// The coordinator cannot be reached: it surely never arrives.
    Fail(usize),
    /// The host hears the answer.
    Learn(usize),
    /// A host takes the partition over.
    Claim(usize),
    /// It fences a member of the newest extent.
    Fence(usize, usize),
    /// A fenced copy gets what the longest of them has.
    Level(usize, usize),
    /// It proposes where the newest extent ends.
    Settle(usize),
    /// A copy is held to the recorded length.
    Adopt(usize, usize),
    /// A copy gets its bytes from another one.
    Pull(usize, usize),
    Replay(usize),
    /// It goes on in an extent on these nodes.
    Resume(usize, u8),
    Silence(usize),
    Crash(usize, bool),
    /// Power is lost, and a synced append of a copy; whether the copy knows it.
    Tear(usize, usize, bool),
    Die(usize),
    Return(usize),
}

/// A fault that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A host answers when all members but one have synced.
    AnswerBeforeAll,
    /// A new owner proposes the least end that it finds.
    LeastEnd,
    /// A new owner proposes an end that one of the members that it reached has, not all.
    NotLevelled,
    /// A new owner looks at ends without fencing.
    Unfenced,
    /// A member that has no such extent forgets a fence.
    FenceForgotten,
    /// A new owner replays what one member has, and does not hold others to it.
    NotHeld,
    /// The transaction of a roll names no length, and nobody settles one.
    RollWithoutLength,
    /// While a roll's outcome is unknown a host answers what the old extent has.
    AnswersWhileRolling,
    /// A roll compares nothing.
    RollUncompared,
}

/// What a host does with writes while a roll's outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhileRolling {
    /// They wait.
    Wait,
    /// They go to both extents, and are answered when both have them.
    Both,
}

/// A world's size.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    nodes: usize,
    copies: usize,
    left: Left,
    rolling: WhileRolling,
    /// Whether a member may write and not yet have synced. Matters only with crashes.
    tails: bool,
    fault: Option<Fault>,
}

impl World {
    fn holders(&self, extent: usize, place: u8) -> usize {
        self.nodes.iter().filter(|node| !node.dead && node.copies[extent].holds(place)).count()
    }

    fn losses(&self, extent: usize, place: u8) -> usize {
        self.losses.iter().filter(|loss| loss.hits(number(extent), place)).count()
    }

    fn members(&self, extent: usize) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.member[extent])
    }

    /// The members that answer.
    fn reached(&self, extent: usize) -> impl Iterator<Item = &Node> {
        self.members(extent).filter(|node| node.up)
    }

    /// The copies of members that answer and take no more appends.
    fn fenced(&self, extent: usize) -> impl Iterator<Item = &ExtentCopy> {
        let copies = self.reached(extent).map(move |node| &node.copies[extent]);
        copies.filter(|copy| copy.phase == Phase::Closed)
    }

    /// The places of the log, in order: extent, place.
    fn log(&self) -> impl Iterator<Item = (usize, u8)> {
        self.descriptor.extents().flat_map(|extent| {
            let Extent { length, sent, .. } = self.extents[extent];
            (0..length.unwrap_or(sent).min(sent)).map(move |place| (extent, place))
        })
    }

    fn record(&self, extent: usize, place: u8) -> u8 {
        self.extents[extent].records[usize::from(place)]
    }

    /// Forgets what no step and no property looks at: extents in no log, late answers of members to
    /// those that write no more, what idle hosts knew.
    fn forget(&mut self) {
        let (mut used, mut written) = (self.descriptor.log, [false; EXTENTS]);
        for host in &mut self.hosts {
            match host.stage {
                Stage::Idle => {
                    (host.seen, host.rows) = (Descriptor::FIRST, 0);
                    continue;
                }
                Stage::Claimed | Stage::Replayed => {}
                Stage::Serving => written[host.seen.newest()] = true,
                Stage::Rolling(next, ..) => {
                    written[host.seen.newest()] = true;
                    written[usize::from(next)] = true;
                }
            }
            host.seen.extents().for_each(|extent| used[extent] = true);
        }
        for extent in 0..EXTENTS {
            for node in self.nodes.iter_mut().filter(|_| !written[extent]) {
                node.copies[extent].said = 0;
            }
            if !used[extent] && !written[extent] {
                self.extents[extent] = Extent::default();
                self.losses.retain(|loss| loss.extent != number(extent));
                for node in &mut self.nodes {
                    (node.member[extent], node.copies[extent]) = (false, ExtentCopy::ABSENT);
                }
            }
        }
    }

    /// Notes what one copy loses.
    fn lose(&mut self, extent: usize, from: u8, to: u8) {
        if from < to {
            self.losses.push(Loss { extent: number(extent), from, to });
            self.losses.sort_unstable();
        }
    }
}

impl Bounds {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let nodes = (0..self.nodes).map(|node| {
            let mut member = [false; EXTENTS];
            member[0] = node < self.copies;
            Node { up: true, dead: false, member, copies: [ExtentCopy::ABSENT; EXTENTS] }
        });
        let seen = Descriptor::FIRST;
        let idle = Host { seen, stage: Stage::Idle, rows: 0 };
        vec![World {
            descriptor: seen,
            extents: [Extent::default(); EXTENTS],
            nodes: nodes.collect(),
            hosts: [Host { stage: Stage::Serving, ..idle }, idle],
            next: (1, 0),
            acknowledged: 0,
            left: self.left,
            losses: Vec::new(),
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        self.candidates(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, step)?;
        next.forget();
        next.nodes.sort_unstable();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
