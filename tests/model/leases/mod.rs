//! Read leases and validated reads of one partition, model-checked.
//!
//! What must hold:
//!
//! 1. A host asks a member about named logs for its epoch. The answer names those that are fenced
//!    there. A log that the member does not have as an open copy of its own is named too.
//! 2. A read is right if, for every log that may be the newest, every member of it gave an answer
//!    that does not name the log, to a question sent after the read was evaluated.
//! 3. A lease is such an answer, kept for 1 s from the sending of its question. An accepted append
//!    is an answer too. A read is also right if all leases hold after it was evaluated.
//! 4. A host takes only what it asked for under its present epoch.
//! 5. A member that has a fence accepts nothing for lower epochs, not even an append that it has
//!    already. It keeps the fence for ever, and answers it when no lease that it gave can hold:
//!    1.2 s after its last answer.
//! 6. It need not wait for a lease whose holder has said, naming the epoch, that it stopped for
//!    good, or is dead. Of what it answered before its own start it knows nothing: so it waits, and
//!    nothing that it is told ends that.
//! 7. A new owner claims the descriptor as it is then, and serves after one member of its newest
//!    log has answered the fence.
//! 8. While a transaction that rolls the log may still be carried out, both logs may be the newest:
//!    reads need the answers of both, and a write is answered when all members of both have it.
//!    That ends when the host knows the outcome, or has changed the descriptor's revision since.
//!    To read a descriptor without the new log is not enough, and a refused repetition is not.
//! 9. A refused condition is a read, and so is what reclaim decides. If it is due to a write that
//!    is not durable yet, it waits for that write.
//!
//! The world: a partition that is one register, so what it holds is the number of the newest
//! write. Two hosts, members of logs, a coordinator. Messages take any time, are lost, and overtake
//! each other. Processes stand still while time passes. A lease is 2 ticks of the host's clock, the
//! wait 3 of the member's, and a host's clock may lose a tick. Ticks stand for the order of 1 s,
//! 1.2 s and 5 %, not for their sizes. Only times of one clock are compared.
//! Members start anew, logs roll, owners change, hosts stop and come back.
//!
//! Checked in every state: what is answered shows every write that was acknowledged, or shown by
//! another answer, before the read was sent; it was evaluated on the newest rows; a new owner finds
//! all of that. A read is sent and evaluated in one step: a later evaluation sees only more.
//!
//! Left out: settling of copies with different ends and clean seals (the model of appends), several
//! partitions that share a question, a second roll while the first is unknown, how the outcome of a
//! new owner's own roll gets lost (it does not serve before it knows), sessions (nothing here
//! relies on them). A write begins only when the one before it is durable.

mod hosts;
mod members;
mod owners;
mod rolls;
#[cfg(test)]
mod tests;
mod world;

use stateright::Model;
use stateright::Property;
use world::{Append, Call, Copy, Descriptor, HOSTS, Host, Kind, LOGS, MEMBERS, Mode, Outcome};
use world::{Question, Read, Release, Roll, Set, Used, World, Wrong, each};

/// How much may happen.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    writes: u8,
    takeovers: u8,
    rolls: u8,
    /// Starts of members.
    restarts: u8,
    /// Hosts that stop for good and say so.
    releases: u8,
    /// Members of sealed logs that are replaced by others.
    replaced: u8,
    /// Ticks that clocks of hosts lose.
    lag: u8,
    /// Hosts that clients read from.
    readers: Set,
    /// Whether those ask the members. Without, only appends give leases.
    asks: bool,
    /// Hosts whose appends are messages. Those of others are stored and answered in one step.
    appenders: Set,
    /// Whether clients send writes whose condition does not hold.
    refusals: bool,
    /// Whether a new owner may go on in the log of the old one, if all members took its epoch.
    same_log: bool,
    /// The members of each log.
    members: [Set; LOGS as usize],
    fault: Option<Fault>,
}

/// A fault planted to see that the properties can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A member answers a fence without waiting.
    FenceAtOnce,
    /// It waits 1 s as the host does, so nothing is left for clocks that differ.
    NoMargin,
    /// After its own start it does not wait.
    NoWaitAfterStart,
    /// It has the fence in memory only.
    FenceForgotten,
    /// Its answers do not name the fenced logs.
    NamesNothing,
    /// An accepted append is a lease for the host, but no answer for the member.
    AppendUnnoted,
    /// An append that is in the log already is answered again in spite of a fence.
    RepeatedAfterFence,
    /// A new member that pulled its copy says that the log is not fenced.
    PulledAnswers,
    /// A lease that is given back ends those of other epochs too.
    ReleaseNamesNoEpoch,
    /// It ends the wait after the member's start too.
    ReleaseEndsStart,
    /// A host says that it stopped, and answers what it was asked before.
    ReleasedTooEarly,
    /// A host takes an answer that it asked for under an earlier epoch of its own.
    EarlierEpoch,
    /// The lease counts from the receipt of the answer.
    FromReceipt,
    /// The clock of a host stands still while its machine is suspended.
    ClockStops,
    /// One member's answer is enough.
    OneMember,
    /// Leases are looked at before the evaluation.
    CheckedBefore,
    /// A read is answered by a question that was under way when it was evaluated.
    EarlierQuestion,
    /// A refusal needs no lease.
    RefusalUnchecked,
    /// A refusal does not wait for the write that it is due to.
    RefusalOfPending,
    /// While the outcome of a roll is unknown, only the old log counts.
    OnlyOldLog,
    /// The same with the new log.
    OnlyNewLog,
    /// Meanwhile a write is answered when the members of the old log have it.
    WrittenToOld,
    /// The same with the new log.
    WrittenToNew,
    /// A new owner fences the newest log of a descriptor that it read before its claim.
    ClaimUnread,
    /// A descriptor without the new log is taken for a refused roll.
    LookSettles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Time passes on all clocks, but for the named host's.
    Tick(Option<u8>),
    /// A host asks a member, the question arrives, the answer arrives.
    Ask(u8, u8),
    Reach(u8, u8),
    Hear(u8, u8),
    /// A client sends a read, and the host evaluates it.
    Evaluate(u8, Kind),
    Answer(u8),
    Write(u8),
    /// The pending write is sent to a member, stored, and known to be stored.
    Append(u8, u8),
    Store(u8, u8),
    Stored(u8, u8),
    /// A host sends the transaction of a roll.
    Roll(u8),
    /// It arrives at the coordinator, which carries it out if nothing has changed.
    Carry,
    /// The coordinator refuses it although nothing has changed: its store is full.
    Refuse,
    Learn(u8),
    /// The host does not wait for the answer: its next transaction changes the revision, or shows
    /// that the roll was carried out.
    Settle(u8),
    /// Only with faults: a host reads the descriptor.
    Look(u8),
    Claim(u8),
    /// A fence arrives at a member; the member answers it.
    Fence(u8, u8),
    Fenced(u8, u8),
    /// The new owner rolls the log and serves.
    Open(u8),
    /// The new owner goes on in the log it found, and serves.
    Continue(u8),
    /// A host stops for good and gives its leases back. Or: it dies, and a later process of its
    /// data directory says hello.
    Leave(u8),
    /// A member learns of that.
    Released(u8, u8),
    /// A member's process starts again.
    Restart(u8),
    /// A member of a settled log is replaced by one that pulls its copy.
    Replace(u8, u8),
}

impl Bounds {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn members_of(&self, log: u8) -> Set {
        self.members[usize::from(log)]
    }

    /// The members of any of these logs.
    fn members_of_all(&self, logs: Set) -> Set {
        each(logs).fold(0, |members, log| members | self.members_of(log))
    }

    /// The logs for which a host wants answers.
    fn needed(&self, host: &Host) -> Set {
        match host.next {
            Some(_) if self.has(Fault::OnlyOldLog) => 1 << host.log,
            Some(next) if self.has(Fault::OnlyNewLog) => 1 << next,
            Some(_) | None => host.logs(),
        }
    }

    fn each_member_of(&self, logs: Set, holds: impl Fn(usize, u8) -> bool) -> bool {
        each(logs).all(|log| {
            let mut members = each(self.members_of(log)).map(usize::from);
            if self.has(Fault::OneMember) {
                members.any(|member| holds(member, log))
            } else {
                members.all(|member| holds(member, log))
            }
        })
    }

    fn leases_hold(&self, host: &Host) -> bool {
        self.each_member_of(self.needed(host), |member, log| {
            host.leases[member][usize::from(log)] > 0
        })
    }

    /// Whether the read that was evaluated may be answered because the members were asked.
    fn validated(&self, host: &Host) -> bool {
        match host.read {
            Read::Evaluated { heard, .. } => {
                self.each_member_of(self.needed(host), |member, log| heard[member] & 1 << log != 0)
            }
            Read::None | Read::Checked { .. } => false,
        }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            map: Descriptor { epoch: 1, log: 0, revision: 0 },
            roll: None,
            hosts: [Host::IDLE; HOSTS as usize],
            members: [[Copy::default(); LOGS as usize]; MEMBERS as usize],
            logs: 1,
            written: 0,
            seen: 0,
            wrong: None,
            used: Used::default(),
        };
        (world.hosts[0].mode, world.hosts[0].epoch) = (Mode::Serving, 1);
        each(self.members_of(0)).for_each(|member| world.copy_mut(member, 0).fence = 1);
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.wrong.is_some() {
            return;
        }
        steps.push(Step::Tick(None));
        for host in 0..HOSTS {
            if world.used.lag < self.lag || self.has(Fault::ClockStops) {
                steps.push(Step::Tick(Some(host)));
            }
            self.host_steps(world, host, steps);
            self.message_steps(world, host, steps);
        }
        if world.roll.is_some_and(|roll| roll.outcome == Outcome::UnderWay) {
            steps.extend([Step::Carry, Step::Refuse]);
        }
        self.member_steps(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        self.tidy(&mut next);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(READ, |_, world: &World| world.wrong != Some(Wrong::Read)),
            Property::always(REFUSAL, |_, world: &World| world.wrong != Some(Wrong::Refusal)),
            Property::always(ROWS, |_, world: &World| world.wrong != Some(Wrong::Rows)),
            Property::always(LOST, |_, world: &World| world.wrong != Some(Wrong::Lost)),
            Property::sometimes(BY_LEASES, |model: &Self, world: &World| {
                world.hosts.iter().any(|host| {
                    matches!(host.read, Read::Evaluated { heard: [0, 0, 0], .. })
                        && model.leases_hold(host)
                })
            }),
            Property::sometimes(BY_ASKING, |model: &Self, world: &World| {
                world.hosts.iter().any(|host| model.validated(host) && !model.leases_hold(host))
            }),
            Property::sometimes(STANDS_STILL, |_, world: &World| {
                world.reading().any(|old| {
                    let served = |new: &Host| new.mode == Mode::Serving && new.epoch > old.epoch;
                    old.view < world.seen && world.hosts.iter().any(served)
                })
            }),
            Property::sometimes(SILENT, |model: &Self, world: &World| {
                world.reading().any(|host| {
                    let held = |member: u8| host.leases[usize::from(member)][usize::from(host.log)];
                    let members = || each(model.members_of(host.log)).map(held);
                    members().any(|left| left == 0) && members().any(|left| left > 0)
                })
            }),
        ]
    }
}

const READ: &str = "a read shows what was seen before it was sent";
const REFUSAL: &str = "a refusal is due to what was seen before it was sent, or to more";
const ROWS: &str = "what is answered was evaluated on the newest rows";
const LOST: &str = "a new owner finds what was seen";
const BY_LEASES: &str = "a read is answered by leases, without asking";
const BY_ASKING: &str = "a read is answered by asking, without leases";
const STANDS_STILL: &str = "the old owner wakes up with a read when the new one has written";
const SILENT: &str = "a member is silent, and another is not";
