//! Claims, what a new owner does before it serves, and how a host stops.

use super::world::{LEASE, WAIT};
use super::*;

impl Bounds {
    pub(super) fn claim(&self, world: &mut World, number: u8) -> Option<()> {
        world.used.takeovers += 1;
        world.map.epoch += 1;
        world.map.revision += 1;
        let Descriptor { epoch, log, .. } = world.map;
        let host = world.host_mut(number);
        let unread = self.has(Fault::ClaimUnread);
        host.log = if unread { host.log } else { log };
        (host.mode, host.epoch) = (Mode::Claimed, epoch);
        Some(())
    }

    /// The answer to a fence arrives, with the end of the member's copy.
    pub(super) fn fenced(&self, world: &mut World, number: u8, member: u8) -> Option<()> {
        let Host { epoch, log, .. } = *world.host(number);
        let copy = *world.copy(member, log);
        let waits = copy.wait > 0 && !self.has(Fault::FenceAtOnce);
        let short = self.has(Fault::NoMargin) && copy.wait <= WAIT - LEASE;
        if copy.fence != epoch || (waits && !short) {
            return None;
        }
        let host = world.host_mut(number);
        host.fenced |= 1 << member;
        host.view = host.view.max(copy.write);
        Some(())
    }

    pub(super) fn open(&self, world: &mut World, number: u8) -> Option<()> {
        if !self.still_owner(world, number) {
            return Some(());
        }
        let log = self.new_log(world, number);
        world.map.log = log;
        world.map.revision += 1;
        let host = world.host_mut(number);
        (host.mode, host.log, host.fenced) = (Mode::Serving, log, 0);
        Some(())
    }

    pub(super) fn go_on(&self, world: &mut World, number: u8) -> Option<()> {
        if !self.still_owner(world, number) {
            return Some(());
        }
        let Host { log, view, .. } = *world.host(number);
        each(self.members_of(log)).for_each(|member| world.copy_mut(member, log).write = view);
        let host = world.host_mut(number);
        (host.mode, host.fenced) = (Mode::Serving, 0);
        Some(())
    }

    /// Whether a claim still stands; and whether what was seen is in the log.
    fn still_owner(&self, world: &mut World, number: u8) -> bool {
        let Host { epoch, view, .. } = *world.host(number);
        if world.map.epoch != epoch {
            self.stop(world, number);
            return false;
        }
        if view < world.seen {
            world.wrong = Some(Wrong::Lost);
        }
        true
    }

    /// Makes a log whose first record has all that is shown.
    pub(super) fn new_log(&self, world: &mut World, number: u8) -> u8 {
        let Host { epoch, view, .. } = *world.host(number);
        let log = world.logs;
        world.logs += 1;
        for member in each(self.members_of(log)) {
            *world.copy_mut(member, log) = Copy { write: view, fence: epoch, ..Copy::default() };
        }
        log
    }

    pub(super) fn leave(&self, world: &mut World, number: u8) -> Option<()> {
        world.used.releases += 1;
        let Host { epoch, .. } = *world.host(number);
        let logs = world.host(number).logs();
        if !self.has(Fault::ReleasedTooEarly) {
            self.stop(world, number);
        }
        for member in each(self.members_of_all(logs)) {
            let release = Some(Release { epoch, logs });
            world.host_mut(number).releases[usize::from(member)] = release;
        }
        Some(())
    }

    /// The host serves no more: its reads are not answered. Questions may still be under way.
    pub(super) fn stop(&self, world: &mut World, number: u8) {
        let host = world.host_mut(number);
        host.forget_since();
        // An answer to them does nothing. To see that takes some takeovers.
        let calls = if self.takeovers > 2 { host.calls } else { Host::IDLE.calls };
        *host = Host { calls, releases: host.releases, ..Host::IDLE };
    }
}
