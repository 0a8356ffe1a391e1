//! Capacity under work by several writers: what was acknowledged and not freed is there, byte for byte, after anything.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use blockyard::capacity::AppendRequest;
use blockyard::capacity::Appended;
use blockyard::capacity::Capacity;
use blockyard::capacity::CapacityConfig;
use blockyard::capacity::CapacityMetrics;
use blockyard::capacity::CapacityNode;
use blockyard::capacity::Durability;
use blockyard::capacity::Error;
use blockyard::capacity::ExtentInfo;
use blockyard::capacity::ExtentKind;
use blockyard::capacity::ExtentState;
use blockyard::capacity::end_after;
use blockyard::env::Fault;
use blockyard::env::SimDisk;
use blockyard::types::Epoch;
use blockyard::types::ExtentId;
use blockyard::types::Location;
use blockyard::types::crc32c;
use bytes::Bytes;
use futures_util::future::join_all;

use crate::draw::Draw;
use crate::draw::content;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Machine;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;

const DISK_BYTES: u64 = 24 << 20;
const WRITERS: u64 = 4;
const STEPS: u64 = 40;

/// How sure a stored payload is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Acknowledged durable.
    Durable,
    /// Appended, sync deferred: there until a crash.
    Deferred,
    /// Freed, or about to be: anything but wrong bytes.
    Freed,
}

#[derive(Clone, Debug)]
struct Stored {
    location: Location,
    tag: u64,
    claim: Claim,
}

/// The reference: what was answered, extent by extent.
#[derive(Debug, Default)]
struct Model {
    stored: Vec<Stored>,
    /// Ends told by seals.
    sealed: BTreeMap<ExtentId, u64>,
    /// Extents of which something was freed.
    holed: BTreeSet<ExtentId>,
    /// Epochs that fenced.
    fenced: BTreeMap<ExtentId, Epoch>,
    /// The disk on which the creation of each succeeded.
    homes: BTreeMap<ExtentId, usize>,
    /// Extents that were to be removed.
    removed: BTreeSet<ExtentId>,
    next_extent: u64,
    next_tag: u64,
}

impl Model {
    fn extent(&mut self) -> ExtentId {
        self.next_extent += 1;
        ExtentId::new(self.next_extent)
    }

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// A durable answer at the extent's end covers all before it.
    fn settle(&mut self, extent: ExtentId) {
        for stored in self.stored.iter_mut().filter(|s| s.location.extent == extent) {
            if stored.claim == Claim::Deferred {
                stored.claim = Claim::Durable;
            }
        }
    }

    /// A creation that failed on one disk and went on elsewhere leaves an empty file on a disk that takes no more writes. It
    /// shows, with none of what the extent had seen, once the extent itself was removed, by name or with its last payload.
    fn is_rest_of_creation(&self, info: &ExtentInfo) -> bool {
        let of_it = |stored: &&Stored| stored.location.extent == info.extent;
        let freed = |stored: &Stored| stored.claim == Claim::Freed;
        let gone = self.removed.contains(&info.extent) || self.holed.contains(&info.extent);
        let elsewhere = self.homes.get(&info.extent).is_some_and(|home| *home != info.disk);
        info.len == 0 && elsewhere && gone && self.stored.iter().filter(of_it).all(freed)
    }

    fn crash(&mut self) {
        self.stored.retain(|stored| stored.claim == Claim::Durable);
    }
}

/// One history.
pub(crate) fn run(seed: u64, device: Device) -> Run {
    let draw = Draw::new(seed);
    let disks = if draw.percent(25) { 2 } else { 1 };
    let mut rig = Rig::new(seed, disks, DISK_BYTES, device);
    let model = RefCell::new(Model::default());
    for _ in 0..draw.between(2, 4) {
        let plan = Plan::draw(&draw);
        let sims = rig.sims.clone();
        rig.session(&draw, plan, |machine| work(machine, plan, &draw, &model, sims))?;
        model.borrow_mut().crash();
    }
    let sims = rig.sims.clone();
    rig.session(&draw, Plan::CALM, |machine| last_look(machine, &draw, &model, sims))?;
    Ok(rig.trace())
}

/// A failed sync leaves bytes in the cache that the device may not have. What a new process shows of them must still be
/// there after a power cut.
pub(crate) fn run_failed_sync(seed: u64) -> Run {
    let draw = Draw::new(seed);
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let extent = ExtentId::new(1);
    let sims = rig.sims.clone();
    let killed = Plan { trouble: Trouble::None, end: End::Kill };
    rig.session(&draw, killed, |machine| async move {
        let node = open(&machine).await?;
        node.create(extent, ExtentKind::Log, Epoch::new(1)).await.map_err(|e| e.to_string())?;
        for sim in &sims {
            sim.fail_once(Fault::SyncError, 0);
        }
        let request = AppendRequest {
            extent,
            epoch: Epoch::new(1),
            offset: 0,
            payloads: vec![vec![content(1, 40_000)], vec![content(2, 50_000)]],
            durability: Durability::Durable,
        };
        match node.append(request).await {
            Err(Error::Poisoned { .. }) => Ok(()),
            other => Err(format!("an append whose sync failed answered {other:?}")),
        }
    })?;
    let look = |machine: Machine| async move {
        let node = open(&machine).await?;
        read_log(&node, extent).await.map_err(|error| error.to_string())
    };
    let cut = Plan { trouble: Trouble::None, end: End::PowerCut };
    let shown = rig.session(&draw, cut, look)?;
    let kept = rig.session(&draw, cut, look)?;
    if shown != kept {
        return Err(format!("{} bytes were shown, {} were kept", shown.len(), kept.len()));
    }
    Ok(rig.trace())
}

async fn open(machine: &Machine) -> Result<Arc<CapacityNode>, Violation> {
    let config = CapacityConfig::small();
    let metrics = CapacityMetrics::default();
    let opened = CapacityNode::open(machine.disks.clone(), machine.env.clone(), config, metrics);
    opened.await.map_err(|error| format!("does not open: {error}"))
}

async fn work(
    machine: Machine,
    plan: Plan,
    draw: &Draw,
    model: &RefCell<Model>,
    sims: Vec<SimDisk>,
) -> Result<(), Violation> {
    let node = match open(&machine).await {
        Ok(node) => node,
        // With a fault in the way a start may fail; it must not have harmed anything.
        Err(_) if plan.trouble != Trouble::None => return Ok(()),
        Err(why) => return Err(why),
    };
    machine.started();
    let calm = plan.trouble == Trouble::None;
    verify_all(&node, model, !calm || sims.iter().any(SimDisk::is_down)).await?;
    let writers = (0..WRITERS).map(|_| {
        let writer = Writer { node: &node, plan, draw, model, sims: &sims };
        writer.run()
    });
    join_all(writers).await.into_iter().collect::<Result<Vec<()>, Violation>>()?;
    if plan.end == End::Shutdown {
        node.shutdown().await;
    }
    Ok(())
}

async fn last_look(
    machine: Machine,
    draw: &Draw,
    model: &RefCell<Model>,
    sims: Vec<SimDisk>,
) -> Result<(), Violation> {
    let node = open(&machine).await?;
    verify_all(&node, model, false).await?;
    let infos = node.extents().await;
    for info in &infos {
        if info.state != ExtentState::Sealed {
            return Err(format!("{} is open after a restart", info.extent));
        }
        if let Some(epoch) = model.borrow().fenced.get(&info.extent)
            && info.epoch < *epoch
            && !model.borrow().is_rest_of_creation(info)
        {
            return Err(format!("{} forgot that epoch {epoch} fenced it", info.extent));
        }
        let expected = log_of(&model.borrow(), info.extent);
        if let Some(expected) = expected.filter(|expected| !expected.is_empty()) {
            let log = read_log(&node, info.extent).await;
            let log = log.map_err(|error| format!("log {}: {error}", info.extent))?;
            if !log.starts_with(&expected) {
                return Err(format!("log {} reads back otherwise than written", info.extent));
            }
        }
        if let Some(end) = model.borrow().sealed.get(&info.extent)
            && info.len != *end
            && !model.borrow().is_rest_of_creation(info)
        {
            return Err(format!("{} was sealed at {end}, ends at {}", info.extent, info.len));
        }
    }
    if draw.percent(50) {
        let flips: Vec<_> =
            (0..8).filter_map(|_| draw.one(&sims)?.flip_random("extents/")).collect();
        verify_all(&node, model, true).await?;
        scrub_finds_damage(&node, model, flips.len()).await?;
    }
    node.shutdown().await;
    Ok(())
}

/// The scrub names every damaged payload. Extents with holes are left out: the catalog of a simulated node forgets
/// frees at a restart, and a frame whose head is damaged behind a hole may be the rest of a freed one.
async fn scrub_finds_damage(
    node: &CapacityNode,
    model: &RefCell<Model>,
    flips: usize,
) -> Result<(), Violation> {
    let mut corrupt = Vec::new();
    for info in node.extents().await {
        let report = node.scrub(info.extent).await.map_err(|error| error.to_string())?;
        corrupt.extend(report.corrupt);
    }
    let stored = model.borrow().stored.clone();
    for stored in stored.iter().filter(|stored| stored.claim == Claim::Durable) {
        let location = stored.location;
        let frames = node.frames_of(&location);
        let unreadable = node.read(&location, 0..location.len).await.is_err();
        let found = corrupt
            .iter()
            .any(|(extent, offset)| *extent == location.extent && frames.contains(offset));
        if unreadable && !found && !model.borrow().holed.contains(&location.extent) {
            return Err(format!("{flips} flips, {location:?} is damaged, the scrub did not say"));
        }
    }
    Ok(())
}

/// All that is known to be in an extent of which nothing was freed, in order.
fn log_of(model: &Model, extent: ExtentId) -> Option<Vec<u8>> {
    if model.holed.contains(&extent) {
        return None;
    }
    let mut stored: Vec<&Stored> =
        model.stored.iter().filter(|stored| stored.location.extent == extent).collect();
    if stored.iter().any(|stored| stored.claim == Claim::Freed) {
        return None;
    }
    stored.sort_by_key(|stored| stored.location.offset);
    let parts: Vec<Bytes> =
        stored.iter().map(|stored| content(stored.tag, stored.location.len)).collect();
    Some(parts.concat())
}

async fn read_log(node: &CapacityNode, extent: ExtentId) -> Result<Vec<u8>, Error> {
    let mut log = Vec::new();
    let mut offset = 0;
    while let Some(frame) = node.next_frame(extent, offset).await? {
        log.extend_from_slice(&frame.payload);
        offset = frame.next;
    }
    Ok(log)
}

async fn verify_all(
    node: &CapacityNode,
    model: &RefCell<Model>,
    may_fail: bool,
) -> Result<(), Violation> {
    let stored = model.borrow().stored.clone();
    for stored in &stored {
        check_read(node, stored, 0..stored.location.len, may_fail).await?;
    }
    Ok(())
}

async fn check_read(
    node: &CapacityNode,
    stored: &Stored,
    range: std::ops::Range<u64>,
    may_fail: bool,
) -> Result<(), Violation> {
    let expected = content(stored.tag, stored.location.len);
    let wanted =
        expected.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
    match node.read(&stored.location, range.clone()).await {
        Ok(pieces) if pieces.concat() == wanted => Ok(()),
        Ok(_) => Err(format!("wrong bytes for {:?} {range:?}", stored.location)),
        Err(_) if may_fail || stored.claim == Claim::Freed => Ok(()),
        Err(error) => Err(format!("lost {stored:?}: {error}")),
    }
}

/// One writer: its extents are its own, as in life.
struct Writer<'a> {
    node: &'a CapacityNode,
    plan: Plan,
    draw: &'a Draw,
    model: &'a RefCell<Model>,
    sims: &'a [SimDisk],
}

/// An extent being written.
struct Open {
    extent: ExtentId,
    kind: ExtentKind,
    epoch: Epoch,
    end: u64,
}

impl Writer<'_> {
    async fn run(self) -> Result<(), Violation> {
        let mut open = None;
        for _ in 0..STEPS {
            if self.sims.iter().any(SimDisk::is_down) {
                break;
            }
            self.step(&mut open).await?;
        }
        Ok(())
    }

    /// Whether an error is no surprise.
    fn excused(&self, error: &Error) -> bool {
        let down = self.sims.iter().any(SimDisk::is_down);
        match error {
            Error::Full => true,
            Error::Poisoned { .. } => {
                down || matches!(
                    self.plan.trouble,
                    Trouble::WriteError | Trouble::SyncError | Trouble::ReadErrors
                )
            }
            Error::Unreadable { .. } => down || self.plan.trouble == Trouble::ReadErrors,
            Error::NoSuchExtent { .. }
            | Error::Sealed { .. }
            | Error::Fenced { .. }
            | Error::WrongOffset { .. }
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
            offset: open.end,
            payloads: tagged.iter().map(|(_, bytes)| self.cut(bytes)).collect(),
            durability,
        };
        let appended = self.node.append(request).await;
        let Some(appended) = self.excuse("append", appended)? else {
            self.seal(open).await?;
            return Ok(None);
        };
        self.check_appended(&open, &tagged, &appended)?;
        open.end = appended.end;
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

    /// The same bytes in one piece or two.
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
        let right = appended.end == end_after(open.end, &lens)
            && appended.locations.len() == tagged.len()
            && appended.locations.iter().zip(tagged).all(|(location, (_, bytes))| {
                location.extent == open.extent
                    && location.len == bytes.len() as u64
                    && location.crc == crc32c(bytes)
            });
        if right { Ok(()) } else { Err(format!("append at {} answered {appended:?}", open.end)) }
    }

    async fn seal(&self, open: Open) -> Result<(), Violation> {
        let sealed = self.node.seal(open.extent, open.epoch).await;
        let Some(end) = self.excuse("seal", sealed)? else { return Ok(()) };
        if end < open.end {
            return Err(format!("{} sealed at {end}, acknowledged to {}", open.extent, open.end));
        }
        let mut model = self.model.borrow_mut();
        model.settle(open.extent);
        model.sealed.insert(open.extent, end);
        Ok(())
    }

    async fn read(&self) -> Result<(), Violation> {
        let stored = self.draw.one(&self.model.borrow().stored).cloned();
        let Some(stored) = stored else { return Ok(()) };
        let from = self.draw.between(0, stored.location.len - 1);
        let to = self.draw.between(from, stored.location.len);
        let down = self.sims.iter().any(SimDisk::is_down);
        let may_fail = down || self.plan.trouble == Trouble::ReadErrors;
        let read = check_read(self.node, &stored, from..to, may_fail).await;
        // It may have been freed, or the power gone, while the read was on its way.
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

    /// A higher epoch takes the extent over; the lower one is out, for good.
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
            offset: open.end,
            payloads: vec![vec![Bytes::from_static(b"late")]],
            durability: Durability::Durable,
        };
        match self.node.append(late).await {
            Ok(_) => Err(format!("{} took an append of a fenced writer", open.extent)),
            Err(Error::Fenced { .. }) => Ok(Some(open)),
            Err(error) => Ok(self.excuse("late append", Err::<(), _>(error))?.map(|()| open)),
        }
    }

    /// A log read from the front gives what was appended, in order.
    async fn replay(&self, open: &Open) -> Result<(), Violation> {
        let expected = log_of(&self.model.borrow(), open.extent);
        if open.kind == ExtentKind::Log
            && let Some(expected) = expected
            && !self.node_holds_log(open.extent, &expected).await
            && !self.sims.iter().any(SimDisk::is_down)
            && self.plan.trouble != Trouble::ReadErrors
            // Another writer may have freed some of it meanwhile.
            && log_of(&self.model.borrow(), open.extent).is_some()
        {
            return Err(format!("log {} reads back otherwise than written", open.extent));
        }
        Ok(())
    }

    async fn node_holds_log(&self, extent: ExtentId, expected: &[u8]) -> bool {
        matches!(read_log(self.node, extent).await, Ok(log) if log.starts_with(expected))
    }

    /// An append at a wrong place is refused and harms nothing.
    async fn refused(&self, open: &Open) -> Result<(), Violation> {
        let request = AppendRequest {
            extent: open.extent,
            epoch: open.epoch,
            offset: open.end,
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
