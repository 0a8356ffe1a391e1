//! One data group: appends, seals, closing, change of members, gone extents.
//!
//! One writer, which may be late: its session ends, and it goes on. One manager, whose memory is
//! the group's record and what members say. Nodes are alike, so states are sorted by node.

mod faults;
mod members;
mod properties;
mod rest;
mod steps;
mod tests;
mod writer;

use super::copy::ExtentCopy;
use super::copy::Loss;
use super::copy::Mark;
use super::copy::Phase;
use super::copy::number;
use stateright::Model;
use stateright::Property;

/// Extents that a group of this model has at most.
const EXTENTS: usize = 2;
/// Appends that an extent of this model takes at most.
const PLACES: usize = 2;

/// What a node has followed of the group's record; it is on its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct View {
    member: bool,
    closed: bool,
    gone: [bool; EXTENTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    /// The record names it.
    member: bool,
    /// It was a member when the group was made: the writer appends to it.
    target: bool,
    /// Others reach it.
    up: bool,
    /// Its disk is gone. It never comes back.
    dead: bool,
    /// The manager has seen that it may leave; its transaction is on the way.
    leaving: bool,
    view: View,
    copies: [ExtentCopy; EXTENTS],
    /// Extents that it removed because the record says that they are gone.
    removed: [bool; EXTENTS],
}

/// The group's record in the coordinator. Members are in `Node::member`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Record {
    closed: bool,
    /// Whether members have ever changed.
    changed: bool,
    /// Lengths of unclean seals.
    lengths: [Option<u8>; EXTENTS],
    gone: [bool; EXTENTS],
}

/// How far the writer is with an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    #[default]
    Unused,
    Writing,
    /// Rolled with nothing outstanding: it tells the members where the extent ends.
    Clean,
    /// Rolled with something outstanding: it proposes what was answered.
    GivenUp,
    /// What is outstanding is a large body, and a member is lost: it proposes what was sent.
    Large,
    /// Its proposal was carried out or refused.
    Proposed,
}

/// What the writer knows of an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Written {
    stage: Stage,
    sent: u8,
    answered: u8,
    /// On how many copies each answered append was. Not the writer's: only properties look at it.
    on: [u8; PLACES],
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Left {
    appends: u8,
    /// Crashes, with the loss of what was not synced.
    crashes: u8,
    /// Nodes that do not answer for a while.
    silences: u8,
    /// Copies that lose a synced append in a power cut, and know it.
    tears: u8,
    /// The same, but nothing proves it.
    lies: u8,
    /// Nodes whose disk is lost.
    deaths: u8,
    /// New members.
    joins: u8,
    /// Extents that are freed.
    frees: u8,
    /// Large bodies.
    large: u8,
    /// The writer loses its session.
    ends: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    nodes: Vec<Node>,
    record: Record,
    written: [Written; EXTENTS],
    left: Left,
    losses: Vec<Loss>,
    /// On how many copies each extent was when its length was recorded. Not in the record.
    settled_on: [u8; EXTENTS],
    /// Extents that are gone because no member had them. Not in the record.
    buried: [bool; EXTENTS],
    /// Extents that were open when members changed. Not in the record.
    open_at_change: [bool; EXTENTS],
}

/// A step; nodes and extents are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The writer sends an append to all members.
    Send(usize),
    /// A member writes it.
    Receive(usize, usize),
    /// A member syncs, and answers.
    Sync(usize, usize),
    /// A member answers a repetition of what it has.
    Repeat(usize, usize),
    /// The writer has heard enough members, and answers.
    Answer(usize),
    /// The writer goes on in another extent.
    Roll(usize),
    /// The same, but what is outstanding cannot be sent again.
    RollLarge(usize),
    /// The writer's transaction for an unclean seal arrives.
    Propose(usize),
    /// The manager no longer sees the writer.
    SessionEnds,
    /// The record says that the group is closed.
    Close,
    /// A node learns what the record says.
    Follow(usize),
    /// No member has an extent, and none will: the record says that it is gone.
    Bury(usize),
    /// An extent whose bytes are all dead: the record says that it is gone.
    Free(usize),
    /// The manager fences a copy.
    Fence(usize, usize),
    /// A fenced copy gets what the longest of them has.
    Level(usize, usize),
    /// The manager proposes an end.
    Settle(usize),
    /// A copy is held to an end that its node was told.
    Adopt(usize, usize, u8),
    /// A copy gets its bytes from another one.
    Pull(usize, usize),
    /// The record names another member.
    Join(usize),
    /// The manager sees that all others have all bytes: a member may leave.
    MayLeave(usize),
    /// The transaction arrives: the record names it no longer.
    Leave(usize),
    /// A member takes the place of another at once.
    Swap(usize, usize),
    /// A node that is no member marks a copy.
    Mark(usize, usize),
    /// It reads the record again, and takes the mark back if it is a member.
    ReadAgain(usize, usize),
    /// It removes the copy.
    Drop(usize, usize),
    /// A node removes what is gone.
    Remove(usize, usize),
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
    /// The writer answers when all members but one have synced.
    AnswerBeforeAll,
    /// The manager proposes the least end that it finds.
    LeastEnd,
    /// The manager proposes an end that one of the members that it reached has, not all.
    NotLevelled,
    /// A copy that lost its tail is a witness.
    TornWitness,
    /// A fence answers an end that is not synced.
    FenceUnsynced,
    /// The writer tells its unclean seal, but there is no record of it.
    NoRecord,
    /// Members of a closed group take new extents.
    NewInClosed,
    /// Members change while extents are open.
    MemberInOpen,
    /// A surplus copy goes by the record that its node followed last.
    OldRecord,
    /// The manager counts copies by what their nodes said before they marked them.
    OldReport,
    /// A member leaves though the record has changed since that was decided.
    LeaveUncompared,
    /// A node that is a member no longer forgets that the group is closed.
    GroupForgotten,
    /// A new member takes the place of an old one before it has the bytes.
    SwapAtOnce,
    /// The same, and the old member keeps its copy until all members have all bytes.
    SwapAndKeep,
    /// The transaction of an unclean seal does not look whether the extent is gone.
    LengthOfGone,
    /// Where no member has an extent is decided of groups whose members have changed.
    BuryAfterChange,
    /// A copy that is being pulled is a witness.
    PullIsWitness,
    /// Late appends make gone extents anew.
    GoneMadeAnew,
}

/// A world's size.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    nodes: usize,
    /// Members of the group when it is made. One less than `copies` while a node is away.
    members: usize,
    copies: usize,
    extents: usize,
    /// Appends that an extent takes.
    places: u8,
    /// Whether a member may write and not yet have synced. Matters only with crashes.
    tails: bool,
    left: Left,
    fault: Option<Fault>,
}

impl World {
    fn members(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.member)
    }

    /// The members that answer.
    fn reached(&self) -> impl Iterator<Item = &Node> {
        self.members().filter(|node| node.up)
    }

    fn targets(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.target)
    }

    fn has_session(&self) -> bool {
        self.left.ends > 0
    }

    /// The end at which a member that answers has sealed an extent.
    fn sealed_by_member(&self, extent: usize) -> Option<u8> {
        self.reached().find_map(|node| node.copies[extent].sealed())
    }

    /// The copies of members that answer and take no more appends.
    fn fenced(&self, extent: usize) -> impl Iterator<Item = &ExtentCopy> {
        let copies = self.reached().map(move |node| &node.copies[extent]);
        copies.filter(|copy| copy.phase == Phase::Closed)
    }

    /// Whether it is settled where an extent ends, as far as the manager can know.
    fn is_settled(&self, extent: usize) -> bool {
        self.record.gone[extent]
            || self.record.lengths[extent].is_some()
            || self.sealed_by_member(extent).is_some()
    }

    /// On how many disks an append is.
    fn holders(&self, extent: usize, place: u8) -> usize {
        self.nodes.iter().filter(|node| !node.dead && node.copies[extent].holds(place)).count()
    }

    fn losses(&self, extent: usize, place: u8) -> usize {
        self.losses.iter().filter(|loss| loss.hits(number(extent), place)).count()
    }

    /// Answers of members to a writer that has rolled are nothing to it.
    fn forget_answers(&mut self) {
        for extent in 0..EXTENTS {
            match self.written[extent].stage {
                Stage::Unused | Stage::Writing | Stage::Large => continue,
                Stage::Clean | Stage::GivenUp | Stage::Proposed => {}
            }
            for node in &mut self.nodes {
                node.copies[extent].said = 0;
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
            let member = node < self.members;
            Node {
                member,
                target: member,
                up: true,
                dead: false,
                leaving: false,
                view: View { member, ..View::default() },
                copies: [ExtentCopy::ABSENT; EXTENTS],
                removed: [false; EXTENTS],
            }
        });
        vec![World {
            nodes: nodes.collect(),
            record: Record::default(),
            written: [Written::default(); EXTENTS],
            left: self.left,
            losses: Vec::new(),
            settled_on: [0; EXTENTS],
            buried: [false; EXTENTS],
            open_at_change: [false; EXTENTS],
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        self.candidates(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, step)?;
        next.forget_answers();
        next.nodes.sort_unstable();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
