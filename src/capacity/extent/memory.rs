//! One extent in memory: how far it goes, what of it is where, what of it is dead.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::capacity::AppendRequest;
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
/// Lock order: `turn`, then `syncing`, then the state. No state lock is held over an await.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Which.
    pub(crate) id: ExtentId,
    /// What for.
    pub(crate) kind: ExtentKind,
    /// Whose turn it is to change the extent; first come, first served.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// Held over every sync of the file and every write of a slot, so that those who wait share the
    /// next sync, and because of two overlapping syncs the system tells only one that bytes were
    /// lost.
    pub(crate) syncing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    window: Mutex<Option<Window>>,
}

/// Whether the extent is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Open or sealed, as its slot says.
    Here,
    /// Removed; its file is gone.
    Removed,
}

/// Whether all freed ranges of an extent are known. Only then a page of zeros in a frame means
/// damage: the pages of freed frames are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frees {
    /// They are.
    Known,
    /// A start found the extent. A power failure may have taken the newest frees from the catalog.
    /// The next audit makes them again, or the pass of reclaim that finds their garbage rows.
    Unsure,
    /// The same, and the scrub has found frames with pages of zeros.
    UnsureOfHoles,
    /// An audit has made them known since. The scrub has yet to examine those frames again.
    Settled,
}

impl Frees {
    /// Once an audit has told what is alive.
    pub(crate) const fn after_audit(self) -> Self {
        match self {
            Self::Known | Self::Unsure => Self::Known,
            Self::UnsureOfHoles | Self::Settled => Self::Settled,
        }
    }

    /// Once the scrub has examined the extent. `has_holes` when it could not tell whether frames
    /// are freed or damaged; an audit may have told meanwhile.
    pub(crate) const fn after_scrub(self, has_holes: bool) -> Self {
        match (self, has_holes) {
            (Self::Known | Self::Settled, false) => Self::Known,
            (Self::Known | Self::Settled, true) => Self::Settled,
            (Self::Unsure | Self::UnsureOfHoles, false) => Self::Unsure,
            (Self::Unsure | Self::UnsureOfHoles, true) => Self::UnsureOfHoles,
        }
    }

    /// Whether there may be frees that `dead` lacks.
    pub(crate) const fn may_lack_any(self) -> bool {
        matches!(self, Self::Unsure | Self::UnsureOfHoles)
    }
}

/// What changes. Offsets are logical.
#[derive(Debug)]
pub(crate) struct State {
    /// Whether it is still there.
    pub(crate) status: Status,
    /// Epoch, open or sealed, known good length: as last written to the file's first page.
    pub(crate) slot: Slot,
    /// Whether that slot is not yet known to be durable.
    pub(crate) slot_unsynced: bool,
    /// Its open file, if any.
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    /// Whether it stands in the store's list of those with an open file.
    pub(crate) listed: bool,
    /// The map that belongs to that file.
    pub(crate) map: Option<Arc<Map>>,
    /// Grows when a compaction puts another file in place.
    pub(crate) rewrites: u64,
    /// Where the next append goes.
    pub(crate) end: u64,
    /// Below this all bytes are in the file; from here on they are in the tail.
    pub(crate) written: u64,
    /// Below this all bytes are durable in the file.
    pub(crate) synced: u64,
    /// Below this a caller was told that all bytes are durable.
    pub(crate) acknowledged: u64,
    /// End of the last append that did not go through the journal.
    pub(crate) direct: u64,
    /// Below this space is reserved.
    pub(crate) allocated: u64,
    /// What is journaled but not in the file.
    pub(crate) tail: Tail,
    /// Freed ranges and padding.
    pub(crate) dead: Ranges,
    /// Whether `dead` has all that is freed.
    pub(crate) frees: Frees,
    /// Padding between frames, for the list written at seal.
    pub(crate) padding: Vec<Range<u64>>,
    /// How many of these the catalog was told.
    pub(crate) padding_noted: usize,
}

impl State {
    /// The open file with its map.
    pub(crate) fn body(&self) -> Option<Body> {
        self.file.clone().map(|file| Body { file, map: self.map.clone() })
    }

    /// Logical bytes that are neither freed nor padding.
    pub(crate) fn live(&self) -> u64 {
        self.end.saturating_sub(self.dead.total())
    }
}

/// The last piece of file a log replay read: small frames share one read.
#[derive(Debug)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Extent {
    /// An extent whose state is known.
    pub(crate) fn new(id: ExtentId, kind: ExtentKind, slot: Slot) -> Self {
        let state = State {
            status: Status::Here,
            slot,
            slot_unsynced: false,
            file: None,
            listed: false,
            map: None,
            rewrites: 0,
            end: slot.len,
            written: slot.len,
            synced: slot.len,
            acknowledged: slot.len,
            direct: 0,
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
            turn: Arc::default(),
            syncing: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            window: Mutex::default(),
        }
    }

    /// The state. A panic while it was held leaves it as it was: every change is made of plain
    /// stores.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ranges of frames that are not freed, in order.
    pub(crate) fn alive(&self) -> Vec<Range<u64>> {
        let state = self.state();
        state.dead.gaps(state.end)
    }

    /// The answer when it is not there.
    pub(crate) fn missing(&self) -> Error {
        Error::NoSuchExtent { extent: self.id }
    }

    /// The answer when the frame at `offset` is not what it should be.
    pub(crate) fn corrupt(&self, offset: u64) -> Error {
        Error::Corrupt { extent: self.id, offset: ExtentOffset::new(offset) }
    }

    /// Whether the writer may append at that offset now.
    pub(crate) fn check_append(&self, request: &AppendRequest) -> Result<(), Error> {
        self.check_open(request.epoch)?;
        let expected = ExtentOffset::new(self.state().end);
        if request.offset != expected {
            return Err(Error::WrongOffset { extent: self.id, expected });
        }
        Ok(())
    }

    /// Whether a writer of this epoch may still append. A refusal is final: no extent comes back,
    /// none is opened again, and epochs only grow. So no turn is needed to refuse.
    pub(crate) fn check_open(&self, epoch: Epoch) -> Result<(), Error> {
        let state = self.state();
        if state.status == Status::Removed {
            return Err(self.missing());
        }
        if epoch < state.slot.epoch {
            return Err(Error::Fenced { extent: self.id, epoch: state.slot.epoch });
        }
        if state.slot.sealed {
            return Err(Error::Sealed { extent: self.id });
        }
        Ok(())
    }

    /// The dead range with this offset in it, if any.
    pub(crate) fn dead_at(&self, offset: u64) -> Option<Range<u64>> {
        self.state().dead.at(offset)
    }

    /// What a node tells of it.
    pub(crate) fn info(&self, disk: usize) -> ExtentInfo {
        let state = self.state();
        ExtentInfo {
            extent: self.id,
            kind: self.kind,
            state: if state.slot.sealed { ExtentState::Sealed } else { ExtentState::Open },
            epoch: state.slot.epoch,
            len: state.end,
            freed: state.dead.total(),
            disk,
        }
    }

    /// Bytes at `offset` from the window a replay keeps, if all or some of them are there.
    pub(crate) fn windowed(&self, offset: u64, len: u64) -> Option<Bytes> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.as_ref()?;
        let skip = offset.checked_sub(window.start)?;
        let have = size(window.bytes.len()).checked_sub(skip)?;
        (have >= len).then(|| window.bytes.slice(index(skip)..index(skip + len)))
    }

    /// Keeps what a replay read; `None` forgets it.
    pub(crate) fn set_window(&self, window: Option<(u64, Bytes)>) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) =
            window.map(|(start, bytes)| Window { start, bytes });
    }
}
