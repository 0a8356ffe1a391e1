//! What hosts do, and what clients and the coordinator do to them.

use super::world::LEASE;
use super::*;

impl Bounds {
    /// What a host may do now.
    pub(super) fn host_steps(&self, world: &World, number: u8, steps: &mut Vec<Step>) {
        let host = world.host(number);
        match host.mode {
            Mode::Idle => {
                if world.used.takeovers < self.takeovers {
                    steps.push(Step::Claim(number));
                }
                if self.has(Fault::ClaimUnread) {
                    steps.push(Step::Look(number));
                }
            }
            Mode::Claimed => {
                for member in each(self.members_of(host.log)) {
                    steps.push(Step::Fence(number, member));
                    steps.push(Step::Fenced(number, member));
                }
                if host.fenced != 0 && world.logs < LOGS {
                    steps.push(Step::Open(number));
                }
                if self.same_log && host.fenced == self.members_of(host.log) {
                    steps.push(Step::Continue(number));
                }
            }
            Mode::Serving => self.serving_steps(world, number, steps),
        }
    }

    fn serving_steps(&self, world: &World, number: u8, steps: &mut Vec<Step>) {
        let host = world.host(number);
        // An owner that nobody will depose is of no interest.
        let claimed = world.hosts.iter().any(|host| host.mode == Mode::Claimed);
        let last = host.epoch == world.map.epoch && world.used.takeovers == self.takeovers;
        if self.readers & 1 << number != 0 && (claimed || !last) {
            let logs = if self.asks { self.needed(host) } else { 0 };
            let asked = self.members_of_all(logs);
            steps.extend(each(asked).map(|member| Step::Ask(number, member)));
            match host.read {
                Read::None => {
                    steps.push(Step::Evaluate(number, Kind::Read));
                    if self.refusals {
                        steps.push(Step::Evaluate(number, Kind::Refusal));
                    }
                }
                Read::Evaluated { .. } | Read::Checked { .. } => steps.push(Step::Answer(number)),
            }
        }
        if host.pending == 0 && world.written < self.writes {
            steps.push(Step::Write(number));
        }
        if host.pending != 0 && self.appenders & 1 << number != 0 {
            let missing = self.members_of_all(host.logs()) & !host.stored;
            steps.extend(each(missing).map(|member| Step::Append(number, member)));
        }
        let free = world.roll.is_none() && host.next.is_none();
        if free && world.used.rolls < self.rolls && world.logs < LOGS {
            steps.push(Step::Roll(number));
        }
        if host.next.is_some() {
            let look = self.has(Fault::LookSettles);
            let settle = if look { Step::Look(number) } else { Step::Settle(number) };
            steps.extend([Step::Learn(number), settle]);
        }
        if world.used.releases < self.releases {
            steps.push(Step::Leave(number));
        }
    }

    /// Carries a step out. Without a result it cannot happen now.
    pub(super) fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Tick(slow) => self.tick(world, slow),
            Step::Ask(host, member) => self.ask(world, host, member),
            Step::Reach(host, member) => self.reach(world, host, member),
            Step::Hear(host, member) => self.hear(world, host, member),
            Step::Evaluate(host, kind) => self.evaluate(world, host, kind),
            Step::Answer(host) => self.answer(world, host),
            Step::Write(host) => self.write(world, host),
            Step::Append(host, member) => {
                world.host_mut(host).appends[usize::from(member)] = Append::Sent(LEASE);
                Some(())
            }
            Step::Store(host, member) => self.store(world, host, member),
            Step::Stored(host, member) => self.stored(world, host, member),
            Step::Roll(host) => self.roll(world, host),
            Step::Carry => Self::carry(world),
            Step::Refuse => Self::refuse(world),
            Step::Learn(host) => self.learn(world, host),
            Step::Settle(host) => self.settle(world, host, true),
            Step::Look(host) if world.host(host).mode == Mode::Idle => {
                world.host_mut(host).log = world.map.log;
                Some(())
            }
            Step::Look(host) => self.settle(world, host, false),
            Step::Claim(host) => self.claim(world, host),
            Step::Fence(host, member) => self.fence(world, host, member),
            Step::Fenced(host, member) => self.fenced(world, host, member),
            Step::Open(host) => self.open(world, host),
            Step::Continue(host) => self.go_on(world, host),
            Step::Leave(host) => self.leave(world, host),
            Step::Released(host, member) => self.released(world, host, member),
            Step::Restart(member) => self.restart(world, member),
            Step::Replace(member, log) => Self::replace(world, member, log),
        }
    }

    fn tick(&self, world: &mut World, slow: Option<u8>) -> Option<()> {
        if slow.is_some() && !self.has(Fault::ClockStops) {
            world.used.lag += 1;
        }
        for number in (0..HOSTS).filter(|number| slow != Some(*number)) {
            let host = world.host_mut(number);
            host.leases
                .as_flattened_mut()
                .iter_mut()
                .for_each(|left| *left = left.saturating_sub(1));
            for call in &mut host.calls {
                if let Call::Asked(question) | Call::Answered(question, _) = call {
                    question.left = question.left.saturating_sub(1);
                }
            }
            for append in &mut host.appends {
                if let Append::Sent(left) | Append::Stored(left) = append {
                    *left = left.saturating_sub(1);
                }
            }
        }
        for copy in world.members.as_flattened_mut() {
            copy.wait = copy.wait.saturating_sub(1);
        }
        Some(())
    }

    /// Ends what makes no difference any more, so that states that are alike are one.
    pub(super) fn tidy(&self, world: &mut World) {
        let keep = self.has(Fault::FromReceipt) || self.has(Fault::EarlierQuestion);
        for host in &mut world.hosts {
            for call in &mut host.calls {
                match call {
                    Call::None => {}
                    Call::Answered(question, fenced) if *fenced != 0 => {
                        (question.left, question.since) = (0, false);
                    }
                    Call::Asked(question) | Call::Answered(question, _) => {
                        if question.left == 0 && !question.since && !keep {
                            *call = Call::None;
                        }
                    }
                }
            }
        }
        let answered = |roll: &Roll| roll.outcome != Outcome::UnderWay;
        if let Some(roll) = world.roll.filter(answered)
            && world.host(roll.host).next != Some(roll.log)
        {
            world.roll = None;
        }
        // Only logs that are or may become the newest, or are claimed, will be fenced.
        let claimed = world.hosts.iter().filter(|host| host.mode == Mode::Claimed);
        let mut fences = claimed.fold(1 << world.map.log, |logs, host| logs | 1 << host.log);
        fences |= world.roll.map_or(0, |roll| 1 << roll.log);
        for copies in &mut world.members {
            for (log, copy) in (0..LOGS).zip(copies) {
                if copy.wait == 0 || fences & 1 << log == 0 {
                    (copy.wait, copy.answered) = (0, 0);
                }
            }
        }
    }

    fn ask(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let host = world.host_mut(number);
        let here = each(self.needed(host)).filter(|log| self.members_of(*log) & 1 << member != 0);
        let question = Question {
            epoch: host.epoch,
            logs: here.fold(0, |logs, log| logs | 1 << log),
            left: LEASE,
            since: matches!(host.read, Read::Evaluated { .. }),
        };
        host.calls[usize::from(member)] = Call::Asked(question);
        Some(())
    }

    fn hear(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let needed = self.needed(world.host(number));
        let host = world.host_mut(number);
        let at = usize::from(member);
        let Call::Answered(question, fenced) = host.calls[at] else { return None };
        host.calls[at] = Call::None;
        let own = question.epoch == host.epoch || self.has(Fault::EarlierEpoch);
        if host.mode != Mode::Serving || !own {
            return Some(());
        }
        if fenced & needed != 0 {
            self.stop(world, number);
            return Some(());
        }
        let left = if self.has(Fault::FromReceipt) { LEASE } else { question.left };
        for log in each(question.logs & needed) {
            let lease = &mut host.leases[at][usize::from(log)];
            *lease = left.max(*lease);
        }
        if let Read::Evaluated { heard, .. } = &mut host.read
            && (question.since || self.has(Fault::EarlierQuestion))
        {
            heard[at] |= question.logs & needed;
        }
        Some(())
    }

    fn evaluate(&self, world: &mut World, number: u8, kind: Kind) -> Option<()> {
        let seen = world.seen;
        let host = *world.host(number);
        let read = if self.has(Fault::CheckedBefore) {
            self.leases_hold(&host).then_some(Read::Checked { kind, seen })?
        } else {
            let value = match kind {
                Kind::Read => host.view,
                // Conditions are evaluated with the writes before them in the queue.
                Kind::Refusal => host.view.max(host.pending),
            };
            Read::Evaluated { kind, value, seen, heard: [0; MEMBERS as usize] }
        };
        world.host_mut(number).forget_since();
        world.host_mut(number).read = read;
        Some(())
    }

    fn answer(&self, world: &mut World, number: u8) -> Option<()> {
        let host = *world.host(number);
        let (kind, value, seen) = match host.read {
            Read::None => return None,
            Read::Checked { kind, seen } => (kind, host.view, seen),
            Read::Evaluated { kind, value, seen, .. } => {
                let refusal = kind == Kind::Refusal;
                let durable = value <= host.view || self.has(Fault::RefusalOfPending);
                let owner = self.leases_hold(&host) || self.validated(&host);
                let unchecked = refusal && self.has(Fault::RefusalUnchecked);
                if !durable || !(owner || unchecked) {
                    return None;
                }
                (kind, value, seen)
            }
        };
        if value < seen {
            world.wrong = Some(match kind {
                Kind::Read => Wrong::Read,
                Kind::Refusal => Wrong::Refusal,
            });
        } else if matches!(host.read, Read::Checked { .. }) && value < world.seen {
            world.wrong = Some(Wrong::Rows);
        }
        world.seen = world.seen.max(value);
        world.host_mut(number).read = Read::None;
        world.host_mut(number).forget_since();
        Some(())
    }

    fn write(&self, world: &mut World, number: u8) -> Option<()> {
        let write = world.written + 1;
        let logs = world.host(number).logs();
        if self.appenders & 1 << number == 0 {
            for member in each(self.members_of_all(logs)) {
                if !self.append(world, number, member, write) {
                    return None;
                }
            }
            world.host_mut(number).stored = self.members_of_all(logs);
        }
        world.written = write;
        world.host_mut(number).pending = write;
        self.publish(world, number);
        Some(())
    }

    /// Shows the pending write and acknowledges it, if all members of all logs have it.
    pub(super) fn publish(&self, world: &mut World, number: u8) {
        let host = world.host_mut(number);
        let logs = match host.next {
            Some(_) if self.has(Fault::WrittenToOld) => 1 << host.log,
            Some(next) if self.has(Fault::WrittenToNew) => 1 << next,
            Some(_) | None => host.logs(),
        };
        if host.pending != 0 && self.members_of_all(logs) & !host.stored == 0 {
            host.view = host.pending;
            (host.pending, host.stored) = (0, 0);
            host.appends = [Append::None; MEMBERS as usize];
            world.seen = world.seen.max(world.host(number).view);
        }
    }

    fn stored(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let host = world.host_mut(number);
        let at = usize::from(member);
        let Append::Stored(left) = host.appends[at] else { return None };
        host.appends[at] = Append::None;
        host.stored |= 1 << member;
        for log in each(host.logs()).filter(|log| self.members_of(*log) & 1 << member != 0) {
            let lease = &mut host.leases[at][usize::from(log)];
            *lease = left.max(*lease);
        }
        self.publish(world, number);
        Some(())
    }
}
