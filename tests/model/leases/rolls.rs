//! Rolls whose outcome may stay unknown.

use super::*;

impl Bounds {
    /// The new log is made, then the transaction is sent. What is pending goes to both logs.
    pub(super) fn roll(&self, world: &mut World, number: u8) -> Option<()> {
        world.used.rolls += 1;
        let log = self.new_log(world, number);
        // A deposed host names a revision that has passed.
        let owner = world.map.epoch == world.host(number).epoch;
        let revision = if owner { world.map.revision } else { 0 };
        world.roll = Some(Roll { host: number, log, revision, outcome: Outcome::UnderWay });
        let host = world.host_mut(number);
        (host.next, host.stored) = (Some(log), 0);
        host.appends = [Append::None; MEMBERS as usize];
        Some(())
    }

    pub(super) fn carry(world: &mut World) -> Option<()> {
        let roll = world.roll.as_mut()?;
        if world.map.revision == roll.revision {
            world.map.log = roll.log;
            world.map.revision += 1;
            roll.outcome = Outcome::Done;
        } else {
            roll.outcome = Outcome::Refused;
        }
        Some(())
    }

    pub(super) fn refuse(world: &mut World) -> Option<()> {
        world.roll.as_mut()?.outcome = Outcome::Refused;
        Some(())
    }

    pub(super) fn learn(&self, world: &mut World, number: u8) -> Option<()> {
        match world.roll?.outcome {
            Outcome::UnderWay => return None,
            Outcome::Done => self.rolled(world, number),
            Outcome::Refused => self.refused(world, number),
        }
        world.roll = None;
        Some(())
    }

    /// The host goes on in the new log.
    fn rolled(&self, world: &mut World, number: u8) {
        let host = world.host_mut(number);
        let Some(log) = host.next.take() else { return };
        for leases in &mut host.leases {
            leases[usize::from(host.log)] = 0;
        }
        host.log = log;
        host.stored &= self.members_of(log);
        self.publish(world, number);
    }

    /// The host goes on in the log it has.
    fn refused(&self, world: &mut World, number: u8) {
        let host = world.host_mut(number);
        let Some(log) = host.next.take() else { return };
        for leases in &mut host.leases {
            leases[usize::from(log)] = 0;
        }
        host.stored &= self.members_of(host.log);
        self.publish(world, number);
    }

    /// The host does not wait. With `change` it sends a transaction that changes nothing but the
    /// revision: the one before it can not be carried out after that. Without, it only reads.
    pub(super) fn settle(&self, world: &mut World, number: u8, change: bool) -> Option<()> {
        let Host { next, epoch, .. } = *world.host(number);
        if world.map.epoch != epoch {
            self.stop(world, number);
        } else if next == Some(world.map.log) {
            self.rolled(world, number);
        } else {
            world.map.revision += u8::from(change);
            self.refused(world, number);
        }
        Some(())
    }
}
