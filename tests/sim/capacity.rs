//! Capacity with several writers: every acknowledged byte that was not freed is readable after any
//! fault.

mod writer;

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
use blockyard::capacity::CatalogPlace;
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
use blockyard::types::ExtentOffset;
use blockyard::types::Location;
use bytes::Bytes;
use futures_util::future::join_all;

use crate::capacity::writer::Writer;
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

/// What a read of a stored payload may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Its bytes: it was acknowledged as durable.
    Durable,
    /// Its bytes, until a crash: it was appended with a deferred sync.
    Deferred,
    /// Its bytes or an error: it was freed, or a free is in progress.
    Freed,
}

#[derive(Clone, Debug)]
struct Stored {
    location: Location,
    tag: u64,
    claim: Claim,
}

/// The reference model: the results of calls, for each extent.
#[derive(Debug, Default)]
struct Model {
    stored: Vec<Stored>,
    /// The ends that seals returned.
    sealed: BTreeMap<ExtentId, u64>,
    /// Extents with freed bytes.
    holed: BTreeSet<ExtentId>,
    /// The epochs that fenced extents.
    fenced: BTreeMap<ExtentId, Epoch>,
    /// The disk on which the creation of each succeeded.
    homes: BTreeMap<ExtentId, usize>,
    /// Extents whose removal was requested.
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

    /// Notes a durable acknowledgement at the extent's end: all bytes before it are durable.
    fn settle(&mut self, extent: ExtentId) {
        for stored in self.stored.iter_mut().filter(|s| s.location.extent == extent) {
            if stored.claim == Claim::Deferred {
                stored.claim = Claim::Durable;
            }
        }
    }

    /// Whether this is the empty file that a failed creation left. A creation may fail on one disk,
    /// which then takes no writes, and succeed on another. The empty file appears once the extent
    /// itself was removed, by id or with its last payload. It has none of the extent's epochs and
    /// bytes.
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

/// Runs one history.
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

/// A failed sync leaves bytes in the cache that the device may not have. Bytes that a new process
/// returns must survive a power failure.
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
            offset: ExtentOffset::START,
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
    let catalog = CatalogPlace::Simulated(machine.catalogs.clone());
    let config = CapacityConfig { catalog, ..CapacityConfig::small() };
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
        // A start may fail because of a fault. It must not have damaged anything.
        Err(_) if plan.trouble.fails_a_start(&sims) => return Ok(()),
        Err(why) => return Err(format!("{why}, with {plan:?}")),
    };
    if node.disks().len() < sims.len() {
        // The node started without a disk. A fault during the disk's recovery may cause that. It
        // must not have damaged anything.
        let problem = format!("a disk is out of service although nothing failed, with {plan:?}");
        return if plan.trouble.costs_a_disk(&sims) { Ok(()) } else { Err(problem) };
    }
    machine.started();
    let may_fail = || plan.trouble == Trouble::ReadErrors || sims.iter().any(SimDisk::is_down);
    verify_all(&node, model, may_fail).await?;
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
    verify_all(&node, model, || false).await?;
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
        verify_all(&node, model, || true).await?;
        scrub_finds_damage(&node, model, flips.len()).await?;
    }
    node.shutdown().await;
    Ok(())
}

/// Checks that the scrub finds every damaged payload. Extents with holes are left out: the catalog
/// may lose frees at a restart, and a frame with a damaged head behind a hole may be the rest of a
/// freed frame.
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
        let unreadable = node.read(&location, 0..location.len.get()).await.is_err();
        let found = corrupt
            .iter()
            .any(|(extent, offset)| *extent == location.extent && frames.contains(&offset.get()));
        if unreadable && !found && !model.borrow().holed.contains(&location.extent) {
            return Err(format!("{flips} flips, {location:?} is damaged, the scrub did not say"));
        }
    }
    Ok(())
}

/// The payloads of an extent in order; `None` if some were freed.
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
        stored.iter().map(|stored| content(stored.tag, stored.location.len.get())).collect();
    Some(parts.concat())
}

async fn read_log(node: &CapacityNode, extent: ExtentId) -> Result<Vec<u8>, Error> {
    let mut log = Vec::new();
    let mut offset = 0;
    while let Some(frame) = node.next_frame(extent, ExtentOffset::new(offset)).await? {
        log.extend_from_slice(&frame.payload);
        offset = frame.next.get();
    }
    Ok(log)
}

async fn verify_all(
    node: &CapacityNode,
    model: &RefCell<Model>,
    may_fail: impl Fn() -> bool,
) -> Result<(), Violation> {
    let stored = model.borrow().stored.clone();
    for stored in &stored {
        let read = check_read(node, stored, 0..stored.location.len.get(), false).await;
        // The power may have failed during the read.
        read.or_else(|why| if may_fail() && why.starts_with("lost") { Ok(()) } else { Err(why) })?;
    }
    Ok(())
}

async fn check_read(
    node: &CapacityNode,
    stored: &Stored,
    range: std::ops::Range<u64>,
    may_fail: bool,
) -> Result<(), Violation> {
    let expected = content(stored.tag, stored.location.len.get());
    let wanted =
        expected.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
    match node.read(&stored.location, range.clone()).await {
        Ok(pieces) if pieces.concat() == wanted => Ok(()),
        Ok(_) => Err(format!("wrong bytes for {:?} {range:?}", stored.location)),
        Err(_) if may_fail || stored.claim == Claim::Freed => Ok(()),
        Err(error) => Err(format!("lost {stored:?}: {error}")),
    }
}
