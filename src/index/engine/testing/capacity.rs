//! Extents in memory, with frames small enough that records span them, and faults at chosen calls.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::capacity::{
    AppendRequest, Appended, Audited, Capacity, Durability, Error, ExtentInfo, ExtentKind,
    ExtentState, LogFrame, ScrubReport,
};
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// Payload bytes of a frame.
const FRAME: usize = 256;
/// Bytes of a frame that are not payload.
const HEAD: u64 = 16;

/// An injected fault.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The call fails and did nothing.
    Refused(Error),
    /// The call fails but was carried out.
    Lied(Error),
    /// An append fails with only its first frame durable.
    Torn(Error),
}

/// Which call it happens at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The n-th changing call from now on, from 0.
    Once(usize),
    /// The n-th and all later ones.
    From(usize),
}

#[derive(Clone, Debug)]
struct Frame {
    offset: u64,
    payload: Bytes,
    durable: bool,
}

#[derive(Clone, Debug)]
struct Extent {
    kind: ExtentKind,
    state: ExtentState,
    epoch: Epoch,
    frames: Vec<Frame>,
}

impl Extent {
    fn end(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.offset + HEAD + frame.payload.len() as u64)
    }
}

#[derive(Debug, Default)]
struct State {
    extents: BTreeMap<ExtentId, Extent>,
    away: BTreeMap<ExtentId, Extent>,
    calls: usize,
    reads: usize,
    /// The most bytes that one flush made durable.
    most_flushed: usize,
    fault: Option<(When, Fault)>,
    full: bool,
    fail_reads: bool,
    /// The next call of this kind panics.
    trap: Option<Trap>,
    /// How long a seal takes.
    seal_takes: Duration,
}

/// A call that panics once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// The creation of an extent of this kind.
    Create(ExtentKind),
    /// A removal.
    Remove,
    /// A fence, after this many others.
    Fence(usize),
}

/// A model of a capacity node.
#[derive(Debug, Default)]
pub(crate) struct MemoryCapacity(Mutex<State>, Gates);

/// Held for as long as calls of a kind have to wait.
#[derive(Debug, Default)]
struct Gates {
    appends: tokio::sync::RwLock<()>,
    reads: tokio::sync::RwLock<()>,
}

impl MemoryCapacity {
    /// Loses bytes that are not durable, and forgets faults.
    pub(crate) fn crash(&self) {
        let mut state = self.0.lock().unwrap();
        for extent in state.extents.values_mut() {
            extent.frames.retain(|frame| frame.durable);
        }
        state.fault = None;
    }

    /// Makes a later call fail.
    pub(crate) fn fail(&self, when: When, fault: Fault) {
        let mut state = self.0.lock().unwrap();
        state.calls = 0;
        state.fault = Some((when, fault));
    }

    /// The extents that hold these bytes within a frame.
    pub(crate) fn that_hold(&self, bytes: &[u8]) -> Vec<ExtentId> {
        let has = |frame: &Frame| frame.payload.windows(bytes.len()).any(|part| part == bytes);
        let state = self.0.lock().unwrap();
        let holding = state.extents.iter().filter(|(_, extent)| extent.frames.iter().any(has));
        holding.map(|(id, _)| *id).collect()
    }

    /// Makes seals take so long.
    pub(crate) fn slow_seals(&self, seal_takes: Duration) {
        self.0.lock().unwrap().seal_takes = seal_takes;
    }

    /// Makes the next call of a kind panic.
    pub(crate) fn trap(&self, trap: Trap) {
        self.0.lock().unwrap().trap = Some(trap);
    }

    fn spring(&self, trap: Trap) {
        let sprung = self.0.lock().unwrap().trap.take_if(|set| *set == trap).is_some();
        assert!(!sprung, "sprung");
    }

    fn spring_fence(&self) {
        let mut state = self.0.lock().unwrap();
        let sprung = match state.trap {
            Some(Trap::Fence(0)) => state.trap.take().is_some(),
            Some(Trap::Fence(others)) => {
                state.trap = Some(Trap::Fence(others - 1));
                false
            }
            Some(Trap::Create(_) | Trap::Remove) | None => false,
        };
        drop(state);
        assert!(!sprung, "sprung");
    }

    /// Lets appends wait for as long as the guard lives.
    pub(crate) async fn stall(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.1.appends.write().await
    }

    /// The same of reads.
    pub(crate) async fn stall_reads(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.1.reads.write().await
    }

    /// Takes these extents away, as a missing disk does, and brings others back.
    pub(crate) fn set_away(&self, away: &[ExtentId]) {
        let mut state = self.0.lock().unwrap();
        let back = std::mem::take(&mut state.away);
        state.extents.extend(back);
        let taken: Vec<_> = away.iter().filter_map(|id| state.extents.remove_entry(id)).collect();
        state.away.extend(taken);
    }

    /// Fills or frees the disk.
    pub(crate) fn set_full(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }

    /// Has reads fail, or no more.
    pub(crate) fn fail_reads(&self, fail: bool) {
        self.0.lock().unwrap().fail_reads = fail;
    }

    /// Changing calls since the last [`Self::fail`].
    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }

    /// Reads so far.
    pub(crate) fn reads(&self) -> usize {
        self.0.lock().unwrap().reads
    }

    /// The most bytes that one flush made durable.
    pub(crate) fn most_flushed(&self) -> usize {
        self.0.lock().unwrap().most_flushed
    }

    /// Extents of a kind.
    pub(crate) fn count(&self, kind: ExtentKind) -> usize {
        self.0.lock().unwrap().extents.values().filter(|extent| extent.kind == kind).count()
    }

    /// All extents.
    pub(crate) fn extents_of_index(&self) -> Vec<ExtentId> {
        self.0.lock().unwrap().extents.keys().copied().collect()
    }

    /// Those of a kind.
    pub(crate) fn extents_of(&self, kind: ExtentKind) -> Vec<ExtentId> {
        let state = self.0.lock().unwrap();
        state.extents.iter().filter(|(_, extent)| extent.kind == kind).map(|(id, _)| *id).collect()
    }

    /// Whether these bytes share memory with a frame.
    pub(crate) fn shares(&self, bytes: &Bytes) -> bool {
        let state = self.0.lock().unwrap();
        let mut frames = state.extents.values().flat_map(|extent| &extent.frames);
        frames.any(|frame| frame.payload.as_ptr_range().contains(&bytes.as_ptr()))
    }

    /// Whether a frame holds these bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        !self.that_hold(bytes).is_empty()
    }

    /// Flips a bit of a log extent's frame, as if the layer below had not noticed.
    pub(crate) fn flip(&self, extent: ExtentId, frame: usize, bit: usize) {
        let mut state = self.0.lock().unwrap();
        let frame = &mut state.extents.get_mut(&extent).unwrap().frames[frame];
        let mut payload = frame.payload.to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        frame.payload = payload.into();
    }

    /// Cuts an extent's last `count` frames off.
    pub(crate) fn cut(&self, extent: ExtentId, count: usize) {
        let mut state = self.0.lock().unwrap();
        let frames = &mut state.extents.get_mut(&extent).unwrap().frames;
        frames.truncate(frames.len() - count);
    }

    /// How many frames an extent has.
    pub(crate) fn frames(&self, extent: ExtentId) -> usize {
        self.0.lock().unwrap().extents[&extent].frames.len()
    }

    /// Runs a changing call under the fault plan.
    fn change<T>(
        &self,
        torn: impl FnOnce(&mut State),
        call: impl FnOnce(&mut State) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut state = self.0.lock().unwrap();
        let number = state.calls;
        state.calls += 1;
        let fault = state.fault.clone().filter(|(when, _)| match when {
            When::Once(at) => *at == number,
            When::From(at) => *at <= number,
        });
        match fault {
            None => call(&mut state),
            Some((_, Fault::Refused(error))) => Err(error),
            Some((_, Fault::Lied(error))) => {
                call(&mut state)?;
                Err(error)
            }
            Some((_, Fault::Torn(error))) => {
                torn(&mut state);
                Err(error)
            }
        }
    }
}

impl State {
    fn writable(&mut self, extent: ExtentId, epoch: Epoch) -> Result<&mut Extent, Error> {
        let found = self.extents.get_mut(&extent).ok_or(Error::NoSuchExtent { extent })?;
        if found.epoch > epoch {
            return Err(Error::Fenced { extent, epoch: found.epoch });
        }
        found.epoch = epoch;
        Ok(found)
    }

    fn append(&mut self, request: &AppendRequest, frames_max: usize) -> Result<Appended, Error> {
        if self.full {
            return Err(Error::Full);
        }
        let extent = self.writable(request.extent, request.epoch)?;
        if extent.state == ExtentState::Sealed {
            return Err(Error::Sealed { extent: request.extent });
        }
        if extent.end() != request.offset.get() {
            return Err(Error::WrongOffset {
                extent: request.extent,
                expected: ExtentOffset::new(extent.end()),
            });
        }
        let durable = request.durability == Durability::Durable;
        let mut locations = Vec::new();
        let mut added = 0;
        for payload in &request.payloads {
            let bytes: Vec<u8> = payload.concat();
            assert!(!bytes.is_empty(), "no payload is empty");
            locations.push(Location {
                extent: request.extent,
                offset: ExtentOffset::new(extent.end()),
                len: ByteLen::new(bytes.len() as u64),
                crc: Crc32c::of(&bytes),
            });
            for chunk in bytes.chunks(FRAME) {
                if added < frames_max {
                    let offset = extent.end();
                    let payload = Bytes::copy_from_slice(chunk);
                    extent.frames.push(Frame { offset, payload, durable });
                    added += 1;
                }
            }
        }
        if durable {
            extent.frames.iter_mut().for_each(|frame| frame.durable = true);
        }
        Ok(Appended { locations, end: ExtentOffset::new(extent.end()) })
    }
}

#[async_trait]
impl Capacity for MemoryCapacity {
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error> {
        self.spring(Trap::Create(kind));
        let done = self.change(
            |_| {},
            |state| {
                if state.full {
                    return Err(Error::Full);
                }
                if state.extents.contains_key(&extent) {
                    return Err(Error::NoSuchExtent { extent });
                }
                let new = Extent { kind, state: ExtentState::Open, epoch, frames: Vec::new() };
                state.extents.insert(extent, new);
                Ok(())
            },
        );
        // The caller may be cancelled before the answer.
        tokio::task::yield_now().await;
        done
    }

    async fn append(&self, request: AppendRequest) -> Result<Appended, Error> {
        // Others run meanwhile, as they do while a disk works.
        tokio::task::yield_now().await;
        let _working = self.1.appends.read().await;
        self.change(
            |state| drop(state.append(&request, 1)),
            |state| state.append(&request, usize::MAX),
        )
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.change(
            |_| {},
            |state| {
                let frames = &mut state.writable(extent, epoch)?.frames;
                let new = frames.iter_mut().filter(|frame| !frame.durable);
                let flushed = new.fold(0, |bytes, frame| {
                    frame.durable = true;
                    bytes + frame.payload.len()
                });
                state.most_flushed = state.most_flushed.max(flushed);
                Ok(())
            },
        )
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        let corrupt = Error::Corrupt { extent: location.extent, offset: location.offset };
        let _working = self.1.reads.read().await;
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        if state.fail_reads {
            return Err(corrupt);
        }
        let extent = state
            .extents
            .get(&location.extent)
            .ok_or(Error::NoSuchExtent { extent: location.extent })?;
        let mut bytes = BytesMut::new();
        for frame in extent.frames.iter().filter(|frame| frame.offset >= location.offset.get()) {
            if (bytes.len() as u64) < location.len.get() {
                bytes.extend_from_slice(&frame.payload);
            }
        }
        if bytes.len() as u64 != location.len.get() || Crc32c::of(&bytes) != location.crc {
            return Err(corrupt);
        }
        let at = |offset| usize::try_from(offset).unwrap();
        let whole = bytes.freeze().slice(at(range.start)..at(range.end));
        let middle = whole.len() / 2;
        Ok(vec![whole.slice(..middle), whole.slice(middle..)])
    }

    async fn next_frame(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        let state = self.0.lock().unwrap();
        let found = state.extents.get(&extent).ok_or(Error::NoSuchExtent { extent })?;
        let frame = found.frames.iter().find(|frame| frame.offset >= offset.get());
        Ok(frame.map(|frame| LogFrame {
            offset: ExtentOffset::new(frame.offset),
            payload: frame.payload.clone(),
            next: ExtentOffset::new(frame.offset + HEAD + frame.payload.len() as u64),
        }))
    }

    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.spring_fence();
        self.change(|_| {}, |state| state.writable(extent, epoch).map(|_| ()))
    }

    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        let takes = self.0.lock().unwrap().seal_takes;
        if takes > Duration::ZERO {
            tokio::time::sleep(takes).await;
        }
        self.change(
            |_| {},
            |state| {
                let extent = state.writable(extent, epoch)?;
                extent.state = ExtentState::Sealed;
                extent.frames.iter_mut().for_each(|frame| frame.durable = true);
                Ok(ExtentOffset::new(extent.end()))
            },
        )
    }

    async fn free(&self, _: &[Location]) -> Result<(), Error> {
        panic!("the index frees no locations of its own")
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.spring(Trap::Remove);
        self.change(
            |_| {},
            |state| {
                state.extents.remove(&extent);
                Ok(())
            },
        )
    }

    async fn retain(&self, _: ExtentId, _: &[Range<u64>], _: Audited) -> Result<(), Error> {
        panic!("the index retains nothing")
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        let frames = location.len.get().div_ceil(FRAME as u64);
        location.offset.get()..location.offset.get() + frames * HEAD + location.len.get()
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        let state = self.0.lock().unwrap();
        let info = |(id, extent): (&ExtentId, &Extent)| ExtentInfo {
            extent: *id,
            kind: extent.kind,
            state: extent.state,
            epoch: extent.epoch,
            len: extent.end(),
            freed: 0,
            disk: 0,
        };
        state.extents.iter().map(info).collect()
    }

    fn is_whole(&self) -> bool {
        self.0.lock().unwrap().away.is_empty()
    }

    async fn scrub(&self, _: ExtentId) -> Result<ScrubReport, Error> {
        Ok(ScrubReport::default())
    }
}
