//! One extent in memory: where it ends, which of its bytes are in the file, durable and dead.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::map::{Body, Map};
use crate::capacity::extent::ranges::Ranges;
use crate::capacity::extent::tail::Tail;
use crate::capacity::units::{index, size};
use crate::env::DiskFile;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// An extent of one disk.
///
/// Lock order: `changing`, then `syncing`, then the state. The state lock is never held over an
/// await.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Its id.
    pub(crate) id: ExtentId,
    /// Its kind.
    pub(crate) kind: ExtentKind,
    /// The change lock: held while an extent is appended to, fenced, sealed, freed, compacted,
    /// moved or removed. Fair: in the order of the calls.
    pub(crate) changing: Arc<tokio::sync::Mutex<()>>,
    /// Held during every sync of the file and every write of a slot. Waiting callers share the next
    /// sync. Syncs must not overlap: the system reports lost bytes to only one of two overlapping
    /// syncs.
    pub(crate) syncing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    window: Mutex<Option<Window>>,
}

/// Whether the extent exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Open, closed or sealed: see [`State::phase`].
    Here,
    /// Removed; its file is gone.
    Removed,
}

/// Whether all freed ranges of an extent are known. Pages of freed frames are given back and read
/// as zeros, so only in such an extent a page of zeros in a frame means damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frees {
    /// All freed ranges are known.
    Known,
    /// The extent was found at a start. The catalog may have lost the newest frees in a power
    /// failure. The next audit repeats them, or the pass of reclaim that finds their garbage rows.
    Unsure,
    /// As `Unsure`, and the scrub has found frames with pages of zeros.
    UnsureOfHoles,
    /// An audit has since repeated all frees. The scrub must examine the frames with pages of zeros
    /// again.
    Settled,
}

impl Frees {
    /// The state after an audit of the whole extent.
    pub(crate) const fn after_audit(self) -> Self {
        match self {
            Self::Known | Self::Unsure => Self::Known,
            Self::UnsureOfHoles | Self::Settled => Self::Settled,
        }
    }

    /// The state after a scrub of the extent. `has_holes` if there were frames that may be freed or
    /// damaged. An audit may have ended during the scrub.
    pub(crate) const fn after_scrub(self, has_holes: bool) -> Self {
        match (self, has_holes) {
            (Self::Known | Self::Settled, false) => Self::Known,
            (Self::Known | Self::Settled, true) => Self::Settled,
            (Self::Unsure | Self::UnsureOfHoles, false) => Self::Unsure,
            (Self::Unsure | Self::UnsureOfHoles, true) => Self::UnsureOfHoles,
        }
    }

    /// Whether ranges may have been freed that are not in `dead`.
    pub(crate) const fn may_lack_any(self) -> bool {
        matches!(self, Self::Unsure | Self::UnsureOfHoles)
    }
}

/// The part of an extent that changes. Offsets are logical.
#[derive(Debug)]
pub(crate) struct State {
    /// Whether it exists.
    pub(crate) status: Status,
    /// The slot as last written to the file's first page: epoch, whether it is sealed, known good
    /// length.
    pub(crate) slot: Slot,
    /// Whether it takes no appends although it is not sealed: see [`ExtentState::Closed`].
    pub(crate) closed: bool,
    /// Whether that slot is not yet known to be durable.
    pub(crate) slot_unsynced: bool,
    /// Its open file, if any.
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    /// Whether the store's list of open files has it.
    pub(crate) listed: bool,
    /// The map of that file.
    pub(crate) map: Option<Arc<Map>>,
    /// Number of compactions that replaced the file.
    pub(crate) rewrites: u64,
    /// Where the next append goes.
    pub(crate) end: ExtentOffset,
    /// Bytes below this are in the file; later ones are in the tail.
    pub(crate) written: ExtentOffset,
    /// Bytes below this are durable in the file.
    pub(crate) synced: ExtentOffset,
    /// Bytes below this were acknowledged as durable.
    pub(crate) acknowledged: ExtentOffset,
    /// End of the last append that did not go through the journal.
    pub(crate) direct: ExtentOffset,
    /// Space is reserved for bytes below this.
    pub(crate) allocated: ExtentOffset,
    /// Bytes that are journaled but not yet in the file.
    pub(crate) tail: Tail,
    /// Freed ranges and padding.
    pub(crate) dead: Ranges,
    /// Whether `dead` has all freed ranges.
    pub(crate) frees: Frees,
    /// Padding between frames, for the list that a seal writes.
    pub(crate) padding: Vec<Range<ExtentOffset>>,
    /// How many of these ranges are noted in the catalog.
    pub(crate) padding_noted: usize,
}

impl State {
    /// Whether it takes appends.
    pub(crate) fn phase(&self) -> ExtentState {
        match (self.slot.sealed, self.closed) {
            (true, _) => ExtentState::Sealed,
            (false, true) => ExtentState::Closed,
            (false, false) => ExtentState::Open,
        }
    }

    /// The open file with its map.
    pub(crate) fn body(&self) -> Option<Body> {
        self.file.clone().map(|file| Body { file, map: self.map.clone() })
    }

    /// Whether appended bytes below `end` are still there. They are not if the copy was cut
    /// meanwhile, to be sealed at a smaller length.
    pub(crate) fn keeps(&self, end: ExtentOffset) -> bool {
        self.end >= end
    }

    /// Drops everything from `end` on.
    pub(crate) fn cut(&mut self, end: ExtentOffset) {
        let marks = [&mut self.end, &mut self.written, &mut self.synced, &mut self.acknowledged];
        for mark in marks.into_iter().chain([&mut self.direct]) {
            *mark = (*mark).min(end);
        }
        self.padding.retain(|range| range.start < end);
        self.padding_noted = self.padding_noted.min(self.padding.len());
        let kept = self.dead.iter().filter(|range| range.start < end);
        self.dead = kept.map(|range| range.start..range.end.min(end)).collect();
    }

    /// Logical bytes that are neither freed nor padding.
    pub(crate) fn live(&self) -> u64 {
        self.end.get().saturating_sub(self.dead.total())
    }
}

/// The piece of the file that a log replay read last. Small frames share one read.
#[derive(Debug)]
struct Window {
    start: ExtentOffset,
    bytes: Bytes,
}

impl Extent {
    /// An extent whose state is known.
    pub(crate) fn new(id: ExtentId, kind: ExtentKind, slot: Slot) -> Self {
        let state = State {
            status: Status::Here,
            slot,
            closed: false,
            slot_unsynced: false,
            file: None,
            listed: false,
            map: None,
            rewrites: 0,
            end: slot.len,
            written: slot.len,
            synced: slot.len,
            acknowledged: slot.len,
            direct: ExtentOffset::START,
            allocated: slot.len,
            tail: Tail::default(),
            dead: Ranges::default(),
            frees: Frees::Known,
            padding: Vec::new(),
            padding_noted: 0,
        };
        Self {
            id,
            kind,
            changing: Arc::default(),
            syncing: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            window: Mutex::default(),
        }
    }

    /// A copy that takes no appends and ends at `end`, all of which is durable in its file.
    pub(crate) fn closed(id: ExtentId, kind: ExtentKind, slot: Slot, end: ExtentOffset) -> Self {
        let extent = Self::new(id, kind, slot);
        {
            let mut state = extent.state();
            state.closed = true;
            (state.end, state.written, state.synced, state.allocated) = (end, end, end, end);
            state.acknowledged = end;
        }
        extent
    }

    /// Locks the state. A poisoned lock is ignored: changes are plain assignments, which do not
    /// panic half way.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ranges of frames that are not freed, in order.
    pub(crate) fn alive(&self) -> Vec<Range<ExtentOffset>> {
        let state = self.state();
        state.dead.gaps(state.end)
    }

    /// The error for a removed extent.
    pub(crate) fn missing(&self) -> Error {
        Error::NoSuchExtent { extent: self.id }
    }

    /// The error for a damaged or missing frame at `offset`.
    pub(crate) fn corrupt(&self, offset: ExtentOffset) -> Error {
        Error::Corrupt { extent: self.id, offset }
    }

    /// Whether a writer of this epoch may append at this offset.
    pub(crate) fn check_append(&self, epoch: Epoch, offset: ExtentOffset) -> Result<(), Error> {
        self.check_open(epoch)?;
        let expected = self.state().end;
        if offset != expected {
            return Err(Error::WrongOffset { extent: self.id, expected });
        }
        Ok(())
    }

    /// Whether a writer of this epoch may still append. A refusal is final: an extent that
    /// is removed, sealed, closed or incomplete never becomes open again, and epochs only grow. So
    /// the change lock is not needed to refuse.
    pub(crate) fn check_open(&self, epoch: Epoch) -> Result<(), Error> {
        let state = self.state();
        if state.status == Status::Removed {
            return Err(self.missing());
        }
        if epoch < state.slot.epoch {
            return Err(Error::Fenced { extent: self.id, epoch: state.slot.epoch });
        }
        if state.slot.sealed || state.closed || state.slot.incomplete {
            return Err(Error::Sealed { extent: self.id });
        }
        Ok(())
    }

    /// The dead range that contains this offset, if any.
    pub(crate) fn dead_at(&self, offset: ExtentOffset) -> Option<Range<ExtentOffset>> {
        self.state().dead.at(offset)
    }

    /// Its state, for callers of the node.
    pub(crate) fn info(&self, disk: usize) -> ExtentInfo {
        let state = self.state();
        ExtentInfo {
            extent: self.id,
            kind: self.kind,
            state: state.phase(),
            epoch: state.slot.epoch,
            len: state.end.get(),
            freed: state.dead.total(),
            disk,
        }
    }

    /// The `len` bytes at `offset`, if the window of the last replay read has all of them.
    pub(crate) fn windowed(&self, offset: ExtentOffset, len: u64) -> Option<Bytes> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.as_ref()?;
        if offset < window.start {
            return None;
        }
        let skip = offset - window.start;
        let have = size(window.bytes.len()).checked_sub(skip)?;
        (have >= len).then(|| window.bytes.slice(index(skip)..index(skip + len)))
    }

    /// Replaces the window by another piece; `None` removes it.
    pub(crate) fn set_window(&self, window: Option<(ExtentOffset, Bytes)>) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) =
            window.map(|(start, bytes)| Window { start, bytes });
    }
}
