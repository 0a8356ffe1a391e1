//! One of several writers, and its operations.

use super::*;
use blockyard::types::ByteLen;
use blockyard::types::Crc32c;
use blockyard::types::ExtentOffset;

/// One writer. No other writer uses its extents.
pub(super) struct Writer<'a> {
    pub(super) node: &'a CapacityNode,
    pub(super) plan: Plan,
    pub(super) draw: &'a Draw,
    pub(super) model: &'a RefCell<Model>,
    pub(super) sims: &'a [SimDisk],
}

/// An extent being written.
struct Open {
    extent: ExtentId,
    kind: ExtentKind,
    epoch: Epoch,
    end: u64,
}

impl Writer<'_> {
    pub(super) async fn run(self) -> Result<(), Violation> {
        let mut open = None;
        for _ in 0..STEPS {
            if self.sims.iter().any(SimDisk::is_down) {
                break;
            }
            self.step(&mut open).await?;
        }
        Ok(())
    }

    /// Whether the faults of the session excuse an error.
    fn excused(&self, error: &Error) -> bool {
        let down = self.sims.iter().any(SimDisk::is_down);
        match error {
            Error::Full => true,
            Error::Poisoned { .. } => self.plan.trouble.has_struck(self.sims),
            Error::Unreadable { .. } | Error::OutOfService { .. } => {
                down || self.plan.trouble == Trouble::ReadErrors
            }
            Error::NoSuchExtent { .. }
            | Error::Sealed { .. }
            | Error::Fenced { .. }
            | Error::WrongOffset { .. }
            | Error::Ended { .. }
            | Error::NoAnswer { .. }
            | Error::Corrupt { .. } => false,
        }
    }

    fn excuse<T>(&self, what: &str, result: Result<T, Error>) -> Result<Option<T>, Violation> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.excused(&error) => Ok(None),
            Err(error) => Err(format!("{what} with {:?}: {error}", self.plan)),
        }
    }

    async fn step(&self, open: &mut Option<Open>) -> Result<(), Violation> {
        let Some(mut writing) = open.take() else {
            *open = self.create().await?;
            return Ok(());
        };
        match self.draw.between(0, 99) {
            0..=59 => *open = self.append(writing).await?,
            60..=64 => self.seal(writing).await?,
            65 => {
                self.replay(&writing).await?;
                *open = Some(writing);
            }
            66..=72 => {
                let flushed = self.node.flush(writing.extent, writing.epoch).await;
                if self.excuse("flush", flushed)?.is_some() {
                    self.model.borrow_mut().settle(writing.extent);
                    *open = Some(writing);
                }
            }
            73..=88 => {
                self.read().await?;
                *open = Some(writing);
            }
            89..=96 => {
                self.free().await?;
                *open = Some(writing);
            }
            97 => {
                writing.end += 1;
                self.refused(&writing).await?;
            }
            98 => *open = self.fence(writing).await?,
            _ => self.remove(writing).await?,
        }
        Ok(())
    }

    async fn create(&self) -> Result<Option<Open>, Violation> {
        let extent = self.model.borrow_mut().extent();
        let kinds = [ExtentKind::Data, ExtentKind::Log, ExtentKind::Run];
        let kind = *self.draw.one(&kinds).unwrap();
        let created = self.node.create(extent, kind, Epoch::new(1)).await;
        let epoch = Epoch::new(1);
        if self.excuse("create", created)?.is_none() {
            return Ok(None);
        }
        let infos = self.node.extents().await;
        let home = infos.iter().find(|info| info.extent == extent).map(|info| info.disk);
        let home = home.ok_or_else(|| format!("{extent} was created and is not there"))?;
        self.model.borrow_mut().homes.insert(extent, home);
        Ok(Some(Open { extent, kind, epoch, end: 0 }))
    }

    async fn append(&self, mut open: Open) -> Result<Option<Open>, Violation> {
        let tagged: Vec<(u64, Bytes)> = (0..self.draw.between(1, 3))
            .map(|_| {
                let tag = self.model.borrow_mut().tag();
                (tag, content(tag, self.draw.length()))
            })
            .collect();
        let durable = self.draw.percent(75);
        let durability = if durable { Durability::Durable } else { Durability::Deferred };
        let request = AppendRequest {
            extent: open.extent,
            epoch: open.epoch,
            offset: ExtentOffset::new(open.end),
            payloads: tagged.iter().map(|(_, bytes)| self.cut(bytes)).collect(),
            durability,
        };
        let appended = self.node.append(request).await;
        let Some(appended) = self.excuse("append", appended)? else {
            self.seal(open).await?;
            return Ok(None);
        };
        self.check_appended(&open, &tagged, &appended)?;
        open.end = appended.end.get();
        let mut model = self.model.borrow_mut();
        let claim = if durable { Claim::Durable } else { Claim::Deferred };
        for ((tag, _), location) in tagged.into_iter().zip(appended.locations) {
            model.stored.push(Stored { location, tag, claim });
        }
        if durable {
            model.settle(open.extent);
        }
        Ok(Some(open))
    }

    /// Splits the bytes into one or two pieces.
    fn cut(&self, bytes: &Bytes) -> Vec<Bytes> {
        let at = usize::try_from(self.draw.between(0, bytes.len() as u64)).unwrap();
        vec![bytes.slice(..at), bytes.slice(at..)]
    }

    fn check_appended(
        &self,
        open: &Open,
        tagged: &[(u64, Bytes)],
        appended: &Appended,
    ) -> Result<(), Violation> {
        let lens: Vec<u64> = tagged.iter().map(|(_, bytes)| bytes.len() as u64).collect();
        let right = appended.end == end_after(ExtentOffset::new(open.end), &lens)
            && appended.locations.len() == tagged.len()
            && appended.locations.iter().zip(tagged).all(|(location, (_, bytes))| {
                location.extent == open.extent
                    && location.len == ByteLen::new(bytes.len() as u64)
                    && location.crc == Crc32c::of(bytes)
            });
        if right { Ok(()) } else { Err(format!("append at {} answered {appended:?}", open.end)) }
    }

    async fn seal(&self, open: Open) -> Result<(), Violation> {
        let sealed = self.node.seal(open.extent, open.epoch).await;
        let Some(end) = self.excuse("seal", sealed)? else { return Ok(()) };
        if end < ExtentOffset::new(open.end) {
            return Err(format!("{} sealed at {end}, acknowledged to {}", open.extent, open.end));
        }
        let mut model = self.model.borrow_mut();
        model.settle(open.extent);
        model.sealed.insert(open.extent, end.get());
        Ok(())
    }

    async fn read(&self) -> Result<(), Violation> {
        let stored = self.draw.one(&self.model.borrow().stored).cloned();
        let Some(stored) = stored else { return Ok(()) };
        let from = self.draw.between(0, stored.location.len.get() - 1);
        let to = self.draw.between(from, stored.location.len.get());
        let down = self.sims.iter().any(SimDisk::is_down);
        let may_fail = down || self.plan.trouble == Trouble::ReadErrors;
        let read = check_read(self.node, &stored, from..to, may_fail).await;
        // The payload may have been freed, or the power may have failed, during the read.
        let freed = |model: &Model| {
            let same = |other: &&Stored| other.tag == stored.tag;
            model.stored.iter().find(same).is_none_or(|other| other.claim == Claim::Freed)
        };
        let excused = freed(&self.model.borrow()) || self.sims.iter().any(SimDisk::is_down);
        read.or_else(|why| if excused && why.starts_with("lost") { Ok(()) } else { Err(why) })
    }

    async fn free(&self) -> Result<(), Violation> {
        let mut locations = Vec::new();
        for _ in 0..self.draw.between(1, 6) {
            let mut model = self.model.borrow_mut();
            let count = model.stored.len() as u64;
            if count == 0 {
                return Ok(());
            }
            let chosen = usize::try_from(self.draw.between(0, count - 1)).unwrap();
            let stored = &mut model.stored[chosen];
            stored.claim = Claim::Freed;
            let location = stored.location;
            model.holed.insert(location.extent);
            locations.push(location);
        }
        let freed = self.node.free(&locations).await;
        self.excuse("free", freed)?;
        Ok(())
    }

    async fn remove(&self, open: Open) -> Result<(), Violation> {
        for stored in &mut self.model.borrow_mut().stored {
            if stored.location.extent == open.extent {
                stored.claim = Claim::Freed;
            }
        }
        self.model.borrow_mut().removed.insert(open.extent);
        let removed = self.node.remove(open.extent).await;
        self.excuse("remove", removed)?;
        Ok(())
    }

    /// Fences the extent with a higher epoch. Appends with the lower epoch are then refused.
    async fn fence(&self, mut open: Open) -> Result<Option<Open>, Violation> {
        let old = open.epoch;
        open.epoch = old.next();
        let fenced = self.node.fence(open.extent, open.epoch).await;
        if self.excuse("fence", fenced)?.is_none() {
            return Ok(None);
        }
        self.model.borrow_mut().fenced.insert(open.extent, open.epoch);
        let late = AppendRequest {
            extent: open.extent,
            epoch: old,
            offset: ExtentOffset::new(open.end),
            payloads: vec![vec![Bytes::from_static(b"late")]],
            durability: Durability::Durable,
        };
        match self.node.append(late).await {
            Ok(_) => Err(format!("{} took an append of a fenced writer", open.extent)),
            Err(Error::Fenced { .. }) => Ok(Some(open)),
            Err(error) => Ok(self.excuse("late append", Err::<(), _>(error))?.map(|()| open)),
        }
    }

    /// Reads a log from the start and compares it with the appends, in order.
    async fn replay(&self, open: &Open) -> Result<(), Violation> {
        let expected = log_of(&self.model.borrow(), open.extent);
        if open.kind == ExtentKind::Log
            && let Some(expected) = expected
            && !self.node_holds_log(open.extent, &expected).await
            && !self.sims.iter().any(SimDisk::is_down)
            && self.plan.trouble != Trouble::ReadErrors
            // Another writer may have freed some payloads meanwhile.
            && log_of(&self.model.borrow(), open.extent).is_some()
        {
            return Err(format!("log {} reads back otherwise than written", open.extent));
        }
        Ok(())
    }

    async fn node_holds_log(&self, extent: ExtentId, expected: &[u8]) -> bool {
        matches!(read_log(self.node, extent).await, Ok(log) if log.starts_with(expected))
    }

    /// Checks that an append at a wrong offset is refused without an effect.
    async fn refused(&self, open: &Open) -> Result<(), Violation> {
        let request = AppendRequest {
            extent: open.extent,
            epoch: open.epoch,
            offset: ExtentOffset::new(open.end),
            payloads: vec![vec![Bytes::from_static(b"misplaced")]],
            durability: Durability::Durable,
        };
        match self.node.append(request).await {
            Ok(_) => Err(format!("an append at a wrong offset of {} was taken", open.extent)),
            Err(Error::WrongOffset { .. }) => Ok(()),
            Err(error) if self.excused(&error) => Ok(()),
            Err(error) => Err(format!("wrong offset: {error}")),
        }
    }
}
