//! What members do, and the messages to them and back.

use super::world::{ANY, WAIT};
use super::*;

impl Bounds {
    /// The messages of a host that may arrive now.
    pub(super) fn message_steps(&self, world: &World, number: u8, steps: &mut Vec<Step>) {
        let host = world.host(number);
        for member in 0..MEMBERS {
            let at = usize::from(member);
            match host.calls[at] {
                Call::None => {}
                Call::Asked(_) => steps.push(Step::Reach(number, member)),
                Call::Answered(..) => steps.push(Step::Hear(number, member)),
            }
            match host.appends[at] {
                Append::None => {}
                Append::Sent(_) => steps.push(Step::Store(number, member)),
                Append::Stored(_) => steps.push(Step::Stored(number, member)),
            }
            if host.releases[at].is_some() {
                steps.push(Step::Released(number, member));
            }
        }
    }

    pub(super) fn member_steps(&self, world: &World, steps: &mut Vec<Step>) {
        let members = self.members_of_all((1 << world.logs) - 1);
        if world.used.restarts < self.restarts {
            steps.extend(each(members).map(Step::Restart));
        }
        if world.used.replaced < self.replaced {
            for log in 0..world.map.log {
                steps.extend(each(self.members_of(log)).map(|member| Step::Replace(member, log)));
            }
        }
    }

    /// A member is asked which logs are fenced. What it does not name is a lease.
    pub(super) fn reach(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let at = usize::from(member);
        let Call::Asked(question) = world.host(number).calls[at] else { return None };
        let mut fenced = 0;
        for log in each(question.logs) {
            let copy = world.copy_mut(member, log);
            let pulled = copy.pulled && !self.has(Fault::PulledAnswers);
            if copy.fence > question.epoch || pulled {
                fenced |= 1 << log;
            } else {
                copy.answers(question.epoch);
            }
        }
        if self.has(Fault::NamesNothing) {
            fenced = 0;
        }
        world.host_mut(number).calls[at] = Call::Answered(question, fenced);
        Some(())
    }

    /// An append arrives.
    pub(super) fn store(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let at = usize::from(member);
        let Append::Sent(left) = world.host(number).appends[at] else { return None };
        let pending = world.host(number).pending;
        let taken = self.append(world, number, member, pending);
        let answer = if taken { Append::Stored(left) } else { Append::None };
        world.host_mut(number).appends[at] = answer;
        Some(())
    }

    /// Appends a write to those of the host's logs that a member has. Tells whether all take it; if
    /// it is in a log already, that is answered again.
    pub(super) fn append(&self, world: &mut World, number: u8, member: u8, write: u8) -> bool {
        let epoch = world.host(number).epoch;
        let mut taken = true;
        for log in each(world.host(number).logs()) {
            let copy = world.copy_mut(member, log);
            if self.members_of(log) & 1 << member == 0 {
                continue;
            }
            if copy.fence > epoch || copy.closed {
                taken &= copy.write == write && self.has(Fault::RepeatedAfterFence);
                continue;
            }
            copy.write = write;
            if !self.has(Fault::AppendUnnoted) {
                copy.answers(epoch);
            }
        }
        taken
    }

    /// A fence arrives. It is durable at once.
    pub(super) fn fence(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let Host { epoch, log, .. } = *world.host(number);
        let copy = world.copy_mut(member, log);
        if copy.fence > epoch {
            self.stop(world, number);
        } else {
            copy.fence = epoch;
        }
        Some(())
    }

    pub(super) fn released(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let at = usize::from(member);
        let Release { epoch, logs } = world.host(number).releases[at]?;
        world.host_mut(number).releases[at] = None;
        for log in each(logs) {
            let copy = world.copy_mut(member, log);
            let any = match copy.answered {
                ANY => self.has(Fault::ReleaseEndsStart),
                _ => self.has(Fault::ReleaseNamesNoEpoch),
            };
            if any || copy.answered == epoch {
                (copy.answered, copy.wait) = (0, 0);
            }
        }
        Some(())
    }

    /// What is in memory is lost, and open copies are closed.
    pub(super) fn restart(&self, world: &mut World, member: u8) -> Option<()> {
        world.used.restarts += 1;
        for log in each((1 << world.logs) - 1) {
            if self.members_of(log) & 1 << member == 0 {
                continue;
            }
            let copy = world.copy_mut(member, log);
            copy.closed = true;
            let wait = if self.has(Fault::NoWaitAfterStart) { 0 } else { WAIT };
            (copy.answered, copy.wait) = (ANY, wait);
            if self.has(Fault::FenceForgotten) {
                copy.fence = 0;
            }
        }
        Some(())
    }

    /// Only of a log that is not the newest: its end is settled.
    pub(super) fn replace(world: &mut World, member: u8, log: u8) -> Option<()> {
        world.used.replaced += 1;
        let write = world.copy(member, log).write;
        *world.copy_mut(member, log) =
            Copy { write, pulled: true, closed: true, ..Copy::default() };
        Some(())
    }
}

impl Copy {
    /// An answer for an epoch gives a lease.
    pub(super) fn answers(&mut self, epoch: u8) {
        if self.answered != ANY {
            self.answered = epoch;
        }
        self.wait = WAIT;
    }
}
