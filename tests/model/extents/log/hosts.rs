//! What hosts do: append, roll, take over.

use super::steps::spend;
use super::*;

impl World {
    /// The extents of a log that have no length yet.
    fn unsettled(&self, of: Descriptor) -> Vec<usize> {
        of.extents().filter(|extent| self.extents[*extent].length.is_none()).collect()
    }

    /// The number of a new extent on these nodes.
    fn new_extent(&mut self, on: u8) -> Option<usize> {
        let extent = usize::from(self.next.0);
        if extent == EXTENTS {
            return None;
        }
        self.next.0 += 1;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            node.member[extent] = on & (1 << number) != 0;
        }
        Some(extent)
    }

    /// Whether all members have answered the next record of an extent; `less` of them need not.
    fn is_answered(&self, extent: usize, less: usize) -> bool {
        let Extent { answered, sent, .. } = self.extents[extent];
        let silent = self.members(extent).filter(|n| n.copies[extent].said <= answered).count();
        answered < sent && silent <= less
    }

    /// Notes that the next record of an extent is answered.
    fn note_answer(&mut self, extent: usize) -> u8 {
        let members = number(self.members(extent).count());
        let extent = &mut self.extents[extent];
        let place = usize::from(extent.answered);
        extent.on[place] = members;
        extent.answered += 1;
        extent.records[place]
    }
}

impl Bounds {
    pub(super) fn send(&self, world: &mut World, host: usize) -> Option<()> {
        let Host { seen, stage, .. } = world.hosts[host];
        let newest = seen.newest();
        let next = match stage {
            Stage::Serving => None,
            Stage::Rolling(next, ..) if self.rolling == WhileRolling::Both => {
                Some(usize::from(next))
            }
            Stage::Rolling(..) if self.has(Fault::AnswersWhileRolling) => None,
            Stage::Idle | Stage::Claimed | Stage::Replayed | Stage::Rolling(..) => return None,
        };
        if world.extents[newest].is_full() {
            return None;
        }
        spend(&mut world.left.records)?;
        let record = world.next.1;
        world.next.1 += 1;
        world.extents[newest].push(record);
        next.into_iter().for_each(|next| world.extents[next].push(record));
        Some(())
    }

    pub(super) fn answer(&self, world: &mut World, host: usize) -> Option<()> {
        let Host { seen, stage, .. } = world.hosts[host];
        let newest = seen.newest();
        let less = usize::from(self.has(Fault::AnswerBeforeAll));
        if !world.is_answered(newest, less) {
            return None;
        }
        match stage {
            Stage::Serving => {}
            Stage::Rolling(next, ..) if self.rolling == WhileRolling::Both => {
                let next = usize::from(next);
                if !world.is_answered(next, less) {
                    return None;
                }
                world.note_answer(next);
            }
            Stage::Rolling(..) if self.has(Fault::AnswersWhileRolling) => {}
            Stage::Idle | Stage::Claimed | Stage::Replayed | Stage::Rolling(..) => return None,
        }
        let record = world.note_answer(newest);
        world.acknowledged |= 1 << record;
        world.hosts[host].rows |= 1 << record;
        Some(())
    }

    /// What was not answered is appended again to the next extent.
    pub(super) fn roll(&self, world: &mut World, host: usize, on: u8) -> Option<()> {
        let Host { seen, stage, .. } = world.hosts[host];
        if stage != Stage::Serving {
            return None;
        }
        spend(&mut world.left.rolls)?;
        let next = world.new_extent(on)?;
        let last = world.extents[seen.newest()];
        for place in last.answered..last.sent {
            world.extents[next].push(last.records[usize::from(place)]);
        }
        world.hosts[host].stage = Stage::Rolling(number(next), last.answered, Outcome::Sent);
        Some(())
    }

    pub(super) fn arrive(&self, world: &mut World, host: usize) -> Option<()> {
        let Host { seen, stage, .. } = world.hosts[host];
        let Stage::Rolling(next, length, Outcome::Sent) = stage else { return None };
        let mut outcome = Outcome::Refused;
        if world.descriptor == seen || self.has(Fault::RollUncompared) {
            outcome = Outcome::Done;
            world.descriptor.log[usize::from(next)] = true;
            let settled_on = number(world.members(seen.newest()).count());
            let last = &mut world.extents[seen.newest()];
            if last.length.is_none() && !self.has(Fault::RollWithoutLength) {
                (last.length, last.settled_on) = (Some(length), settled_on);
            }
        }
        world.hosts[host].stage = Stage::Rolling(next, length, outcome);
        Some(())
    }

    /// A refused roll changes nothing.
    pub(super) fn fail(world: &mut World, host: usize) -> Option<()> {
        let Stage::Rolling(_, _, Outcome::Sent) = world.hosts[host].stage else { return None };
        world.hosts[host].stage = Stage::Serving;
        Some(())
    }

    pub(super) fn learn(world: &mut World, host: usize) -> Option<()> {
        let host = &mut world.hosts[host];
        let Stage::Rolling(next, _, outcome) = host.stage else { return None };
        match outcome {
            Outcome::Sent => return None,
            Outcome::Done => {
                host.seen.log[usize::from(next)] = true;
                host.stage = Stage::Serving;
            }
            // Another owner has the partition.
            Outcome::Refused => host.stage = Stage::Idle,
        }
        Some(())
    }

    pub(super) fn claim(world: &mut World, host: usize) -> Option<()> {
        if usize::from(world.descriptor.host) == host {
            return None;
        }
        spend(&mut world.left.claims)?;
        world.descriptor.epoch += 1;
        world.descriptor.host = number(host);
        let seen = world.descriptor;
        world.hosts[host] = Host { seen, stage: Stage::Claimed, rows: 0 };
        Some(())
    }

    /// Fences a member of the extents whose end is not settled. That is the newest one.
    pub(super) fn fence(&self, world: &mut World, host: usize, node: usize) -> Option<()> {
        let unsettled = world.unsettled(world.hosts[host].seen);
        let node = &mut world.nodes[node];
        if !node.up || self.has(Fault::Unfenced) {
            return None;
        }
        for extent in unsettled.into_iter().filter(|extent| node.member[*extent]) {
            let copy = &mut node.copies[extent];
            match copy.phase {
                Phase::Open => copy.fence(true),
                // It notes the fence of what it does not have.
                Phase::Absent if !self.has(Fault::FenceForgotten) => copy.fence(true),
                Phase::Absent | Phase::Closed | Phase::Sealed(_) => {}
            }
        }
        Some(())
    }

    pub(super) fn level(world: &mut World, host: usize, node: usize) -> Option<()> {
        let extent = world.unsettled(world.hosts[host].seen).first().copied()?;
        let witnesses = world.fenced(extent).filter(|copy| copy.is_witness());
        let end = witnesses.map(|copy| copy.end).max()?;
        let node = &mut world.nodes[node];
        let copy = &mut node.copies[extent];
        let shorter = copy.phase == Phase::Closed && copy.end < end;
        (node.up && node.member[extent] && shorter).then(|| copy.level(end))
    }

    /// The greatest end of the members that are fenced is the length, if the host is still named.
    pub(super) fn settle(&self, world: &mut World, host: usize) -> Option<()> {
        let Host { seen, .. } = world.hosts[host];
        if world.descriptor != seen {
            world.hosts[host].stage = Stage::Idle;
            return Some(());
        }
        let extent = world.unsettled(seen).first().copied()?;
        let copies = || world.reached(extent).map(|node| &node.copies[extent]);
        let is_witness = |copy: &&ExtentCopy| {
            copy.is_witness()
                || (self.has(Fault::Unfenced) && copy.phase == Phase::Open)
                || (self.has(Fault::FenceForgotten) && copy.is_absent())
        };
        if copies().filter(is_witness).all(|copy| copy.lied) {
            // A disk that lies is never the only witness.
            return None;
        }
        let least = self.has(Fault::LeastEnd);
        let ends = copies().filter(is_witness).map(|copy| copy.synced);
        let end = if least { ends.min() } else { ends.max() }?;
        let level = world.fenced(extent).all(|copy| copy.end >= end);
        if !level && !self.has(Fault::NotLevelled) {
            return None;
        }
        let settled_on = number(world.fenced(extent).count());
        let extent = &mut world.extents[extent];
        (extent.length, extent.settled_on) = (Some(end), settled_on);
        Some(())
    }

    /// All members that answer hold all extents to their ends, one at least of each.
    pub(super) fn replay(&self, world: &mut World, host: usize) -> Option<()> {
        let seen = world.hosts[host].seen;
        for extent in seen.extents() {
            let length = world.extents[extent].length?;
            let full = world.reached(extent).filter(|n| n.copies[extent].is_full()).count();
            let reached = world.reached(extent).count();
            let held = full == reached || self.has(Fault::NotHeld);
            if length > 0 && (full == 0 || !held) {
                return None;
            }
            let extent = &mut world.extents[extent];
            for place in 0..usize::from(length) {
                extent.on[place] = extent.on[place].max(number(reached));
                let record = extent.records[place];
                world.hosts[host].rows |= 1 << record;
            }
        }
        world.hosts[host].stage = Stage::Replayed;
        Some(())
    }

    /// Goes on in a log extent of its own.
    pub(super) fn resume(world: &mut World, host: usize, on: u8) -> Option<()> {
        if world.descriptor != world.hosts[host].seen {
            world.hosts[host].stage = Stage::Idle;
            return Some(());
        }
        let next = world.new_extent(on)?;
        world.descriptor.log[next] = true;
        // What it replayed may be read now.
        world.acknowledged |= world.hosts[host].rows;
        let seen = world.descriptor;
        let host = &mut world.hosts[host];
        (host.seen, host.stage) = (seen, Stage::Serving);
        Some(())
    }
}
