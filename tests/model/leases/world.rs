//! What the world consists of.

/// A set of members or logs, as bits.
pub(super) type Set = u8;

pub(super) const HOSTS: u8 = 2;
pub(super) const MEMBERS: u8 = 3;
pub(super) const LOGS: u8 = 4;

/// A lease holds for so many ticks of the host's clock from the sending of the question (1 s).
pub(super) const LEASE: u8 = 2;
/// A member waits so many ticks of its clock before it answers a fence (1.2 s).
pub(super) const WAIT: u8 = 3;
/// Stands for the epochs of all answers that a member gave before its own start.
pub(super) const ANY: u8 = u8::MAX;

/// What the coordinator holds of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Descriptor {
    pub(super) epoch: u8,
    /// The newest log. What is in those before it is also in its first record.
    pub(super) log: u8,
    pub(super) revision: u8,
}

/// A member's copy of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Copy {
    /// The newest write in it.
    pub(super) write: u8,
    /// The epoch of the fence; it survives a restart.
    pub(super) fence: u8,
    /// The epoch of the last answer that a fence must wait for: 0 for none, or [`ANY`]. In memory.
    pub(super) answered: u8,
    /// How long that fence must wait still.
    pub(super) wait: u8,
    /// Takes no more appends: it was open when its member started.
    pub(super) closed: bool,
    /// A new member has pulled this copy after the end of the log was settled.
    pub(super) pulled: bool,
}

/// A question of a host to a member: which of these logs are fenced against this epoch?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) epoch: u8,
    pub(super) logs: Set,
    /// What is left of the lease that the answer gives, by the host's clock.
    pub(super) left: u8,
    /// Whether it was sent after the evaluation of the read that waits.
    pub(super) since: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    None,
    Asked(Question),
    /// The answer, with the logs that it names as fenced.
    Answered(Question, Set),
}

/// The append of a host's pending write at one member, and what is left of the lease it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Append {
    None,
    Sent(u8),
    Stored(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Read,
    /// A write with a condition that does not hold; a decision of reclaim is the same.
    Refusal,
}

/// The read that a host works on. `seen` is what [`World::seen`] was when it was evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Read {
    None,
    Evaluated {
        kind: Kind,
        value: u8,
        seen: u8,
        /// For each member the logs that it said are not fenced, asked after the evaluation.
        heard: [Set; MEMBERS as usize],
    },
    /// Only with a fault: the leases were looked at before the evaluation.
    Checked {
        kind: Kind,
        seen: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Idle,
    /// Has claimed the partition and fences its log.
    Claimed,
    Serving,
}

/// What a member is told of a lease that nobody uses any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Release {
    pub(super) epoch: u8,
    pub(super) logs: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Host {
    pub(super) mode: Mode,
    pub(super) epoch: u8,
    pub(super) log: u8,
    /// The log of a roll whose outcome is unknown.
    pub(super) next: Option<u8>,
    /// The newest write that readers are shown.
    pub(super) view: u8,
    /// The write that is being appended; 0 for none.
    pub(super) pending: u8,
    /// The members that have stored it.
    pub(super) stored: Set,
    /// While claimed: the members that have answered the fence.
    pub(super) fenced: Set,
    /// What is left of the lease of each log from each member.
    pub(super) leases: [[u8; LOGS as usize]; MEMBERS as usize],
    pub(super) calls: [Call; MEMBERS as usize],
    pub(super) appends: [Append; MEMBERS as usize],
    pub(super) releases: [Option<Release>; MEMBERS as usize],
    pub(super) read: Read,
}

impl Host {
    pub(super) const IDLE: Self = Self {
        mode: Mode::Idle,
        epoch: 0,
        log: 0,
        next: None,
        view: 0,
        pending: 0,
        stored: 0,
        fenced: 0,
        leases: [[0; LOGS as usize]; MEMBERS as usize],
        calls: [Call::None; MEMBERS as usize],
        appends: [Append::None; MEMBERS as usize],
        releases: [None; MEMBERS as usize],
        read: Read::None,
    };

    /// The logs that may be the newest.
    pub(super) fn logs(&self) -> Set {
        1 << self.log | self.next.map_or(0, |next| 1 << next)
    }

    /// Questions that are under way were sent before what happens now.
    pub(super) fn forget_since(&mut self) {
        for call in &mut self.calls {
            match call {
                Call::None => {}
                Call::Asked(question) | Call::Answered(question, _) => question.since = false,
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    /// The transaction is somewhere between the host and the coordinator.
    UnderWay,
    /// It was carried out; the answer is under way, or lost.
    Done,
    Refused,
}

/// The transaction that makes `log` the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Roll {
    pub(super) host: u8,
    pub(super) log: u8,
    /// What the descriptor's revision must be.
    pub(super) revision: u8,
    pub(super) outcome: Outcome,
}

/// What has gone wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    /// A read was answered without a write that was seen before it was sent.
    Read,
    /// The same for a refusal.
    Refusal,
    /// What was answered is right, but it was evaluated on rows that were not the newest.
    Rows,
    /// A new owner has not found what was seen before.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) map: Descriptor,
    pub(super) roll: Option<Roll>,
    pub(super) hosts: [Host; HOSTS as usize],
    pub(super) members: [[Copy; LOGS as usize]; MEMBERS as usize],
    /// How many logs were made.
    pub(super) logs: u8,
    /// How many writes were begun. Writes are numbered from 1, in their order in the log.
    pub(super) written: u8,
    /// The newest write that a client knows of: acknowledged, or in an answer.
    pub(super) seen: u8,
    pub(super) wrong: Option<Wrong>,
    pub(super) used: Used,
}

/// How often something happened that is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Used {
    pub(super) takeovers: u8,
    pub(super) rolls: u8,
    pub(super) restarts: u8,
    pub(super) releases: u8,
    pub(super) replaced: u8,
    pub(super) lag: u8,
}

impl World {
    pub(super) fn host(&self, host: u8) -> &Host {
        &self.hosts[usize::from(host)]
    }

    pub(super) fn host_mut(&mut self, host: u8) -> &mut Host {
        &mut self.hosts[usize::from(host)]
    }

    /// The hosts that work on a read.
    pub(super) fn reading(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| matches!(host.read, Read::Evaluated { .. }))
    }

    pub(super) fn copy(&self, member: u8, log: u8) -> &Copy {
        &self.members[usize::from(member)][usize::from(log)]
    }

    pub(super) fn copy_mut(&mut self, member: u8, log: u8) -> &mut Copy {
        &mut self.members[usize::from(member)][usize::from(log)]
    }
}

/// The numbers in a set.
pub(super) fn each(set: Set) -> impl Iterator<Item = u8> {
    (0..8).filter(move |number| set & 1 << number != 0)
}
