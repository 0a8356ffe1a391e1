//! Writes that happen once, model-checked.
//!
//! What must hold:
//!
//! 1. A write has a number of its front end. It is carried out once at most, however often it is
//!    sent, and whoever owns its key then.
//! 2. An owner keeps the answer of each number that is not settled: in the record of the write, and
//!    in manifests, which outlive the record.
//! 3. The front end tells the number below which it asks for nothing any more. An owner keeps the
//!    greatest that it heard of and refuses lower numbers, since it has forgotten their answers.
//!    Records and manifests have it too.
//! 4. Of an incarnation that has ended the owner forgets all. So each later owner must know that it
//!    has ended, from a reading of the coordinator after the fence.
//! 5. A front end frees the bytes of a write only if no attempt of it can still be carried out.
//!    `WrongPartition`, `Overloaded` and a refusal as settled or ended say nothing of the others.
//! 6. A refusal of the only attempt is such a case. A refusal of a repetition is kept as the answer
//!    of a write is; else an earlier attempt, which is still under way, may find that the condition
//!    holds again.
//!
//! The world: a front end with a few numbers, two or three attempts of each, which arrive in any
//! order, late or never; one owner after the other; a condition that others make true and untrue.
//! An append is durable, or the owner is deposed while it is under way; then the next owner finds
//! it or does not. A host that is not the owner refuses.
//!
//! Checked in every state: each number is carried out once at most; what the client was told is
//! what happened, for ever; freed bytes are named by no row.
//!
//! Left out: how the log is fenced (the model of appends), splits (heirs replay the same log),
//! rounds of the audit, which free the bytes of what nobody knows.

mod steps;
#[cfg(test)]
mod tests;

use stateright::Model;
use stateright::Property;

const NUMBERS: usize = 2;
const ATTEMPTS: usize = 3;

/// What a host answers to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Done,
    /// The condition does not hold.
    Refused,
    /// `WrongPartition` or `Overloaded`: this attempt was not carried out.
    NotDone,
    /// The number is settled, or its incarnation has ended.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Attempt {
    Unsent,
    /// On its way, with the number below which all are settled.
    Sent(usize),
    /// The owner appends its record.
    Held,
    /// The answer is on its way, or lost.
    Answered(Answer),
    Heard(Answer),
    /// The host that had it is deposed and does not answer.
    Lost,
}

/// What the front end told its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    Nothing,
    Done,
    /// And the bytes are freed.
    NotDone,
    /// 503, and the bytes stay.
    Unknown,
}

/// What an owner knows of the front end's writes, and what is durable of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Kept {
    answers: [Option<Answer>; NUMBERS],
    /// Lower numbers are settled.
    settled: usize,
}

/// A record that the owner appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    number: usize,
    attempt: usize,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    attempts: [[Attempt; ATTEMPTS]; NUMBERS],
    told: [Told; NUMBERS],
    /// How often each number was carried out.
    done: [u8; NUMBERS],
    /// The owner's memory.
    memory: Kept,
    /// What the next owner will find in log and manifest.
    durable: Kept,
    record: Option<Record>,
    /// Whether the front end's incarnation has ended, and whether the owner knows.
    ended: bool,
    knows: bool,
    /// Only with a fault: what the next owner read of that before it fenced the log.
    read: Option<bool>,
    /// Whether the condition of the writes holds.
    holds: bool,
    changes: u8,
    takeovers: u8,
}

/// How much may happen.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    numbers: usize,
    attempts: usize,
    /// How often others make the condition true or untrue.
    changes: u8,
    takeovers: u8,
    /// Whether the front end's incarnation may end.
    ends: bool,
    fault: Option<Fault>,
}

/// A fault planted to see that the properties can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// An owner does not look whether it has carried the number out.
    Unlooked,
    /// A trim drops the answers of numbers that are not settled.
    TrimForgetsAnswers,
    /// A trim drops the number below which all are settled.
    TrimForgetsSettled,
    /// A new owner does not read which incarnations have ended.
    EndedUnread,
    /// It reads that before it fences the log.
    EndedReadEarly,
    /// The refusal of a repetition is not kept.
    RefusalUnkept,
    /// The front end takes the refusal of its first attempt when it has sent another.
    RefusalOfFirst,
    /// It takes the last answer, while another attempt has none.
    LastAnswer,
    /// A deposed owner says that the append under way was not carried out.
    DeposedSaysNotDone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The front end sends an attempt.
    Ask(usize),
    /// An attempt arrives at a host that is not the owner, or is overloaded.
    Misroute(usize, usize),
    /// It arrives at the owner.
    Take(usize, usize),
    /// The owner's record is durable at all members, and answered.
    Durable,
    Hear(usize, usize),
    /// The front end concludes that nothing was done.
    Free(usize),
    /// It gives up.
    GiveUp(usize),
    Change,
    End,
    /// The owner learns that the incarnation has ended.
    Watch,
    /// A manifest takes the place of the records before it.
    Trim,
    ReadEnded,
    /// A new owner fences and replays; whether it finds the record that was under way.
    TakeOver(bool),
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            attempts: [[Attempt::Unsent; ATTEMPTS]; NUMBERS],
            told: [Told::Nothing; NUMBERS],
            done: [0; NUMBERS],
            memory: Kept::default(),
            durable: Kept::default(),
            record: None,
            ended: false,
            knows: false,
            read: None,
            holds: true,
            changes: 0,
            takeovers: 0,
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for number in 0..self.numbers {
            self.front_end_steps(world, number, steps);
            for attempt in 0..self.attempts {
                match world.attempts[number][attempt] {
                    Attempt::Sent(_) => {
                        steps.push(Step::Misroute(number, attempt));
                        steps.push(Step::Take(number, attempt));
                    }
                    Attempt::Answered(_) => steps.push(Step::Hear(number, attempt)),
                    Attempt::Unsent | Attempt::Held | Attempt::Heard(_) | Attempt::Lost => {}
                }
            }
        }
        if world.record.is_some() {
            steps.push(Step::Durable);
        }
        if world.changes < self.changes {
            steps.push(Step::Change);
        }
        if self.ends {
            steps.extend([Step::End, Step::Watch]);
        }
        steps.push(Step::Trim);
        if world.takeovers < self.takeovers {
            if self.fault == Some(Fault::EndedReadEarly) {
                steps.push(Step::ReadEnded);
            }
            steps.push(Step::TakeOver(false));
            if world.record.is_some() {
                steps.push(Step::TakeOver(true));
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, world: &World| world.done.iter().all(|done| *done < 2)),
            Property::always(TRUE, |_, world: &World| {
                world.told.iter().zip(&world.done).all(|(told, done)| match told {
                    Told::Done => *done == 1,
                    Told::NotDone => *done == 0,
                    Told::Nothing | Told::Unknown => true,
                })
            }),
            Property::sometimes(REPEATED, |_, world: &World| {
                world.takeovers > 0
                    && world.attempts.iter().any(|attempts| {
                        attempts[0] == Attempt::Lost && attempts[1] == Attempt::Heard(Answer::Done)
                    })
            }),
            Property::sometimes(LATE, |_, world: &World| {
                world.done.iter().zip(&world.attempts).any(|(done, attempts)| {
                    *done == 1 && attempts.contains(&Attempt::Answered(Answer::Over))
                })
            }),
            Property::sometimes(REFUSED, |_, world: &World| {
                world.durable.answers.contains(&Some(Answer::Refused))
                    && world.told.contains(&Told::NotDone)
            }),
        ]
    }
}

const ONCE: &str = "each number is carried out once at most";
const TRUE: &str = "the client was told what happened, and freed bytes are named by no row";
const REPEATED: &str = "a later owner gives the answer of a write that it found";
const LATE: &str = "an attempt arrives when its number is settled";
const REFUSED: &str = "a refusal is kept";
