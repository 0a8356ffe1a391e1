//! What each step does to the world.

use super::*;

impl Kept {
    /// Forgets the answers of settled numbers.
    fn settle(&mut self, below: usize) {
        self.settled = self.settled.max(below);
        self.answers.iter_mut().take(self.settled).for_each(|answer| *answer = None);
    }
}

impl Bounds {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn front_end_steps(&self, world: &World, number: usize, steps: &mut Vec<Step>) {
        let attempts = &world.attempts[number][..self.attempts];
        if world.told[number] != Told::Nothing {
            return;
        }
        let begun = number == 0 || world.attempts[number - 1][0] != Attempt::Unsent;
        if begun && attempts.contains(&Attempt::Unsent) {
            steps.push(Step::Ask(number));
        }
        if attempts[0] != Attempt::Unsent {
            steps.extend([Step::Free(number), Step::GiveUp(number)]);
        }
    }

    /// Carries a step out. Without a result it cannot happen now.
    pub(super) fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Ask(number) => {
                let open = |told: &Told| *told == Told::Nothing;
                let settled = world.told.iter().position(open).unwrap_or(NUMBERS);
                let attempts = &mut world.attempts[number];
                let unsent = attempts.iter_mut().find(|attempt| **attempt == Attempt::Unsent)?;
                *unsent = Attempt::Sent(settled);
            }
            Step::Misroute(number, attempt) => {
                world.attempts[number][attempt] = Attempt::Answered(Answer::NotDone);
            }
            Step::Take(number, attempt) => self.arrive(world, number, attempt)?,
            Step::Durable => {
                let Record { number, attempt, answer } = world.record?;
                Self::found(world);
                world.memory.answers[number] = Some(answer);
                world.attempts[number][attempt] = Attempt::Answered(answer);
            }
            Step::Hear(number, attempt) => self.hear(world, number, attempt)?,
            Step::Free(number) => self.free(world, number)?,
            Step::GiveUp(number) => world.told[number] = Told::Unknown,
            Step::Change => {
                world.holds = !world.holds;
                world.changes += 1;
            }
            Step::End => world.ended = true,
            Step::Watch => {
                world.knows = world.ended;
                if world.knows {
                    world.memory = Kept::default();
                }
            }
            Step::Trim => self.trim(world),
            Step::ReadEnded => world.read = Some(world.ended),
            Step::TakeOver(found) => self.take_over(world, found)?,
        }
        Some(())
    }

    fn arrive(&self, world: &mut World, number: usize, attempt: usize) -> Option<()> {
        let Attempt::Sent(settled) = world.attempts[number][attempt] else { return None };
        if world.record.is_some() {
            // The queue is in order.
            return None;
        }
        world.memory.settle(settled);
        let known = world.memory.answers[number].filter(|_| !self.has(Fault::Unlooked));
        let answer = if world.knows || number < world.memory.settled {
            Answer::Over
        } else if let Some(answer) = known {
            answer
        } else if world.holds {
            Answer::Done
        } else {
            Answer::Refused
        };
        let again = attempt > 0 && !self.has(Fault::RefusalUnkept);
        let new = known.is_none()
            && match answer {
                Answer::Done => true,
                Answer::Refused => again,
                Answer::NotDone | Answer::Over => false,
            };
        world.attempts[number][attempt] =
            if new { Attempt::Held } else { Attempt::Answered(answer) };
        world.record = new.then_some(Record { number, attempt, answer });
        Some(())
    }

    /// The record under way is durable. It also has what the owner knew to be settled.
    fn found(world: &mut World) {
        if let Some(Record { number, answer, .. }) = world.record.take() {
            world.durable.answers[number] = Some(answer);
            world.durable.settled = world.durable.settled.max(world.memory.settled);
            world.done[number] += u8::from(answer == Answer::Done);
        }
    }

    fn hear(&self, world: &mut World, number: usize, attempt: usize) -> Option<()> {
        let Attempt::Answered(answer) = world.attempts[number][attempt] else { return None };
        world.attempts[number][attempt] = Attempt::Heard(answer);
        let alone = world.attempts[number][1] == Attempt::Unsent;
        let kept = attempt > 0 || alone || self.has(Fault::RefusalOfFirst);
        if world.told[number] == Told::Nothing {
            world.told[number] = match answer {
                Answer::Done => Told::Done,
                Answer::Refused if kept => Told::NotDone,
                Answer::Refused | Answer::NotDone | Answer::Over => Told::Nothing,
            };
        }
        Some(())
    }

    /// Every attempt that was sent has come back without being carried out.
    fn free(&self, world: &mut World, number: usize) -> Option<()> {
        let not_done = |attempt: &Attempt| match attempt {
            Attempt::Unsent => true,
            Attempt::Heard(Answer::NotDone | Answer::Refused | Answer::Over) => true,
            Attempt::Heard(Answer::Done)
            | Attempt::Sent(_)
            | Attempt::Held
            | Attempt::Answered(_)
            | Attempt::Lost => false,
        };
        let attempts = &world.attempts[number];
        let last = attempts.iter().rfind(|attempt| **attempt != Attempt::Unsent)?;
        let all = attempts.iter().all(not_done);
        if all || (self.has(Fault::LastAnswer) && not_done(last)) {
            world.told[number] = Told::NotDone;
        }
        Some(())
    }

    fn trim(&self, world: &mut World) {
        let mut manifest = world.durable;
        manifest.settle(world.memory.settled);
        if world.knows {
            manifest = Kept::default();
        }
        if self.has(Fault::TrimForgetsAnswers) {
            manifest.answers = [None; NUMBERS];
        }
        if self.has(Fault::TrimForgetsSettled) {
            manifest.settled = 0;
        }
        world.durable = manifest;
    }

    fn take_over(&self, world: &mut World, found: bool) -> Option<()> {
        if let Some(Record { number, attempt, .. }) = world.record {
            let says = self.has(Fault::DeposedSaysNotDone);
            world.attempts[number][attempt] =
                if says { Attempt::Answered(Answer::NotDone) } else { Attempt::Lost };
        }
        if found {
            Self::found(world);
        }
        world.record = None;
        world.knows = match world.read.take() {
            Some(read) => read,
            None if self.has(Fault::EndedReadEarly) => return None,
            None => world.ended && !self.has(Fault::EndedUnread),
        };
        world.memory = if world.knows { Kept::default() } else { world.durable };
        world.takeovers += 1;
        Some(())
    }
}
