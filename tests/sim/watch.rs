//! The capacity that reclaim uses: each free is compared with the reads in progress (I10).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use async_trait::async_trait;
use blockyard::capacity::AppendRequest;
use blockyard::capacity::Appended;
use blockyard::capacity::Audited;
use blockyard::capacity::Capacity;
use blockyard::capacity::Error;
use blockyard::capacity::ExtentInfo;
use blockyard::capacity::ExtentKind;
use blockyard::capacity::LogFrame;
use blockyard::capacity::ScrubReport;
use blockyard::index::Piece;
use blockyard::types::Epoch;
use blockyard::types::ExtentId;
use blockyard::types::ExtentOffset;
use blockyard::types::Location;
use bytes::Bytes;

/// The reads in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    held: BTreeMap<u64, Vec<(ExtentId, Range<u64>)>>,
    broken: Option<String>,
}

/// A read in progress; dropped when the read ends.
#[derive(Debug)]
pub(crate) struct Hold {
    watch: Watch,
    number: u64,
}

impl Watch {
    /// Notes that the locations of a look-up are being read.
    pub(crate) fn hold(&self, capacity: &dyn Capacity, pieces: &[Piece]) -> Hold {
        let frames = pieces.iter().filter_map(|piece| match piece {
            Piece::Stored { location, .. } => Some((location.extent, capacity.frames_of(location))),
            Piece::Inline(_)
            | Piece::Zeros(_)
            | Piece::Encrypted { .. }
            | Piece::Authenticated { .. } => None,
        });
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.held.insert(number, frames.collect());
        Hold { watch: self.clone(), number }
    }

    /// The first free of bytes that were being read, if any.
    pub(crate) fn broken(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares a free of an extent with the reads in progress.
    fn freeing(&self, by: &str, extent: ExtentId, freed: impl Fn(&Range<u64>) -> bool) {
        let mut state = self.lock();
        let mut read = state.held.values().flatten();
        let found = read.find(|(one, frames)| *one == extent && freed(frames)).cloned();
        if let Some((extent, frames)) = found {
            state.broken = Some(format!("{by} frees {frames:?} of {extent}, which is being read"));
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.watch.lock().held.remove(&self.number);
    }
}

/// A capacity whose frees are checked.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) capacity: Arc<dyn Capacity>,
    pub(crate) watch: Watch,
}

#[async_trait]
impl Capacity for Watched {
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error> {
        self.capacity.create(extent, kind, epoch).await
    }

    async fn append(&self, request: AppendRequest) -> Result<Appended, Error> {
        self.capacity.append(request).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.capacity.flush(extent, epoch).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        self.capacity.read(location, range).await
    }

    async fn next_frame(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        self.capacity.next_frame(extent, offset).await
    }

    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.capacity.fence(extent, epoch).await
    }

    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        self.capacity.seal(extent, epoch).await
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        for location in locations {
            let freed = self.capacity.frames_of(location);
            let touches = |read: &Range<u64>| read.start < freed.end && freed.start < read.end;
            self.watch.freeing("reclaim", location.extent, touches);
        }
        self.capacity.free(locations).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.watch.freeing("reclaim", extent, |_| true);
        self.capacity.remove(extent).await
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        let is_live = |read: &Range<u64>| {
            live.iter().any(|live| live.start <= read.start && read.end <= live.end)
        };
        self.watch.freeing("an audit", extent, |read| !is_live(read));
        self.capacity.retain(extent, live, audited).await
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        self.capacity.frames_of(location)
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        self.capacity.extents().await
    }

    fn is_shared(&self) -> bool {
        self.capacity.is_shared()
    }

    fn is_whole(&self) -> bool {
        self.capacity.is_whole()
    }

    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        self.capacity.scrub(extent).await
    }
}
