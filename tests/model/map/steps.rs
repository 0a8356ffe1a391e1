//! What each step does to the world.

use super::*;

/// The outcome of the transaction of a held change.
pub(super) struct Decision {
    /// Whether the map has changed.
    pub(super) done: bool,
    /// What was held.
    pub(super) held: Vec<Descriptor>,
    /// What takes its place.
    pub(super) new: Vec<Descriptor>,
}

impl Bounds {
    pub(super) fn split(&self, world: &mut World, host: u8, id: u8) -> Option<()> {
        let open = world.open(host, id)?.clone();
        let end = world.end(&open.descriptor);
        let mut children = Vec::new();
        for key in open.descriptor.low..open.descriptor.high {
            let epoch = open.descriptor.epoch + 1;
            let link = if self.broken == Some(Broken::Unlinked) { None } else { end };
            let extent = world.new_extent(epoch, Record::Manifest { link, rows: 0 });
            let mut log = open.descriptor.log.clone();
            if self.broken == Some(Broken::Unlinked) {
                log.clear();
            }
            log.push(extent);
            let (id, low, high) = (world.next_id, key, key + 1);
            children.push(Descriptor { id, low, high, epoch, host, log, revision: 0 });
            world.next_id += 1;
        }
        world.open_mut(host, id)?.mode = Mode::Held(vec![open.descriptor], children);
        Some(())
    }

    pub(super) fn merge(&self, world: &mut World, host: u8, left: u8, right: u8) -> Option<()> {
        let (a, b) = (world.open(host, left)?.clone(), world.open(host, right)?.clone());
        let epoch = a.descriptor.epoch.max(b.descriptor.epoch) + 1;
        let rows = if self.broken == Some(Broken::Forgetful) { 0 } else { a.rows | b.rows };
        let extent = world.new_extent(epoch, Record::Manifest { link: None, rows });
        let merged = Descriptor {
            id: world.next_id,
            low: a.descriptor.low,
            high: b.descriptor.high,
            epoch,
            host,
            log: vec![extent],
            revision: 0,
        };
        world.next_id += 1;
        for id in [left, right] {
            let old = vec![a.descriptor.clone(), b.descriptor.clone()];
            world.open_mut(host, id)?.mode = Mode::Held(old, vec![merged.clone()]);
        }
        Some(())
    }

    /// The transaction of a held change.
    pub(super) fn transaction(world: &mut World, host: u8, id: u8) -> Option<Decision> {
        let Mode::Held(held, new) = world.open(host, id)?.mode.clone() else { return None };
        Some(Decision { done: world.decide(&held, &new), held, new })
    }

    pub(super) fn take(&self, world: &mut World, step: &Step) -> Option<()> {
        match *step {
            Step::Write(host, id) => Self::write(world, host, id),
            Step::Split(host, id) => {
                world.changes += 1;
                self.split(world, host, id)
            }
            Step::Merge(host, left, right) => {
                world.changes += 1;
                self.merge(world, host, left, right)
            }
            Step::Move(host, id, to) => {
                world.changes += 1;
                let old = world.open(host, id)?.descriptor.clone();
                let mut next = old.clone();
                (next.epoch, next.host, next.revision) = (next.epoch + 1, to, next.revision + 1);
                world.open_mut(host, id)?.mode = Mode::Held(vec![old], vec![next]);
                Some(())
            }
            Step::Decide(host, id) => Self::finish(world, host, id),
            Step::DecideUnheard(host, id) => {
                let decision = Self::transaction(world, host, id)?;
                decision.held.iter().for_each(|old| world.close_held(host, old));
                Some(())
            }
            Step::GiveUp(host, id) => {
                let Mode::Held(held, _) = world.open(host, id)?.mode.clone() else { return None };
                for one in &mut world.hosts[usize::from(host)] {
                    if held.contains(&one.descriptor) {
                        one.mode = Mode::Serving;
                    }
                }
                Some(())
            }
            Step::Claim(host, id) => {
                world.takeovers += 1;
                let now = world.map.iter_mut().find(|descriptor| descriptor.id == id)?;
                (now.epoch, now.host, now.revision) = (now.epoch + 1, host, now.revision + 1);
                let descriptor = now.clone();
                world.close(host, id);
                let open = Open { descriptor, rows: 0, mode: Mode::Claimed };
                world.hosts[usize::from(host)].push(open);
                Some(())
            }
            Step::FenceAndReplay(host, id) => self.fence_and_replay(world, host, id),
            Step::Roll(host, id) => Self::roll(world, host, id),
            Step::Crash(host) => {
                world.crashes += 1;
                world.hosts[usize::from(host)].clear();
                Some(())
            }
        }
    }

    fn write(world: &mut World, host: u8, id: u8) -> Option<()> {
        let write = world.written;
        let open = world.open(host, id)?;
        let (epoch, extent) = (open.descriptor.epoch, *open.descriptor.log.last()?);
        if world.extents[extent].fence > epoch {
            // Another owner has the partition.
            world.close(host, id);
            return Some(());
        }
        world.extents[extent].records.push(Record::Write(write));
        world.written += 1;
        world.acknowledged |= 1 << write;
        world.open_mut(host, id)?.rows |= 1 << write;
        Some(())
    }

    /// Decides a held change and, if it is done, opens the new partitions.
    fn finish(world: &mut World, host: u8, id: u8) -> Option<()> {
        let Decision { done, held, new } = Self::transaction(world, host, id)?;
        let rows = held.iter().fold(0, |rows, old| rows | world.rows_of(host, old));
        held.iter().for_each(|old| world.close_held(host, old));
        if !done {
            return Some(());
        }
        for descriptor in new {
            if descriptor.host != host {
                // The new host has followed the log; it fences and goes on in it.
                let newest = *descriptor.log.last()?;
                world.extents[newest].fence = descriptor.epoch;
            }
            let rows = clip(rows, &descriptor);
            let at = usize::from(descriptor.host);
            world.hosts[at].retain(|open| open.descriptor.id != descriptor.id);
            world.hosts[at].push(Open { descriptor, rows, mode: Mode::Serving });
        }
        Some(())
    }

    fn fence_and_replay(&self, world: &mut World, host: u8, id: u8) -> Option<()> {
        let descriptor = world.open(host, id)?.descriptor.clone();
        let newest = *descriptor.log.last()?;
        if self.broken != Some(Broken::Unfenced) {
            if world.extents[newest].fence > descriptor.epoch {
                world.close(host, id);
                return Some(());
            }
            world.extents[newest].fence = descriptor.epoch;
        }
        let (rows, end) = (world.replay(&descriptor), world.end(&descriptor));
        let open = world.open_mut(host, id)?;
        (open.rows, open.mode) = (rows, Mode::Replayed(end));
        Some(())
    }

    /// Goes on in a log extent of its own.
    fn roll(world: &mut World, host: u8, id: u8) -> Option<()> {
        let open = world.open(host, id)?.clone();
        let Mode::Replayed(link) = open.mode else { return None };
        let first = Record::Manifest { link, rows: 0 };
        let extent = world.new_extent(open.descriptor.epoch, first);
        let mut next = open.descriptor.clone();
        next.log.push(extent);
        next.revision += 1;
        if world.decide(std::slice::from_ref(&open.descriptor), std::slice::from_ref(&next)) {
            let open = world.open_mut(host, id)?;
            (open.descriptor, open.mode) = (next, Mode::Serving);
        } else {
            world.close(host, id);
        }
        Some(())
    }
}
