//! Compaction of sealed extents. Small dead frames share pages with live ones, so holes cannot free
//! all their space. The live frames are copied to a new file, which replaces the old one. Logical
//! offsets do not change: a map has their positions in the new file.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;

use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::disk::files::unreadable;
use crate::capacity::disk::scrub::pause;
use crate::capacity::disk::store::{Store, folder_of, path_of};
use crate::capacity::extent::header::{DATA_AT, Header, Slot};
use crate::capacity::extent::map::{Entry, Map};
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::extent::walk::{Found, Walker};
use crate::capacity::units::{FileOffset, index, size};
use crate::env::{DiskError, DiskFile};
use crate::types::Crc32c;
use crate::types::ExtentOffset;

/// The suffix of a file name while the file is incomplete. A start removes such files.
pub(crate) const UNFINISHED: &str = ".new";

/// Bytes copied at a time.
const PIECE: u64 = 1024 * 1024;

/// The frames to copy of an extent, and the pace of the copy.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    /// Ranges of whole frames, in order.
    pub(crate) ranges: Vec<Range<ExtentOffset>>,
    /// Bytes per second; 0 means no limit.
    pub(crate) pace: u64,
    /// Whether the copy is read back and verified before it takes the extent's name.
    pub(crate) read_back: bool,
}

impl Frames {
    /// Frames to copy without a limit, for a copy that holds the extent's change lock.
    pub(crate) fn at_once(ranges: Vec<Range<ExtentOffset>>) -> Self {
        Self { ranges, pace: 0, read_back: false }
    }

    /// Bytes of these frames.
    pub(crate) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// A durable file with frames of an extent, under a temporary name or the extent's name.
pub(crate) struct CopiedFile {
    pub(crate) slot: Slot,
    pub(crate) map: Map,
    pub(crate) file: Arc<dyn DiskFile>,
}

/// A new file to which frames are copied.
struct CopyWriter {
    file: Arc<dyn DiskFile>,
    /// The position in the file of the next write.
    at: FileOffset,
    pieces: Vec<Bytes>,
    waiting: u64,
    entries: Vec<Entry>,
}

impl Store {
    /// Compacts extents that have become sparse, until the node stops.
    pub(crate) async fn compact_loop(self: Arc<Self>) {
        let pace = self.config.compact_bytes_per_second;
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = self.env.clock.sleep(self.config.compact_pause) => {}
            }
            let sparse =
                std::mem::take(&mut *self.sparse.lock().unwrap_or_else(PoisonError::into_inner));
            for extent in sparse.values() {
                if self.stopping.is_cancelled() || self.health.poisoned() {
                    return;
                }
                match self.compact_if_sparse(extent).await {
                    Ok(copied) => pause(&self.env, copied, pace).await,
                    // There may be no further free of the extent, so it is kept in the list and
                    // tried again.
                    Err(Error::Full) => self.mark_sparse(extent),
                    // The frame may have been freed. If so, the next audit frees it again and puts
                    // the extent back in the list.
                    Err(error @ Error::Corrupt { .. }) if extent.state().frees.may_lack_any() => {
                        tracing::debug!(
                            extent = %extent.id, %error,
                            "not compacted before the next audit"
                        );
                    }
                    Err(error) => tracing::warn!(
                            extent = %extent.id, %error,
                            "an extent was not compacted; its freed space is not given back"
                    ),
                }
            }
        }
    }

    /// Compacts an extent if that frees enough space. Returns the bytes copied.
    pub(crate) async fn compact_if_sparse(&self, extent: &Arc<Extent>) -> Result<u64, Error> {
        let _changing = extent.changing.lock().await;
        if extent.state().status == Status::Removed {
            return Ok(0);
        }
        let body = self.body(extent).await?;
        let taken = body.file.allocated().await.map_err(|e| unreadable(extent, &e))?;
        let (sealed, live, end) = {
            let state = extent.state();
            (state.slot.sealed, state.live(), state.end)
        };
        // If more than half of the extent is live, a copy frees little: wait for more frees.
        let limit = if live > end.get() / 2 { live + live / 2 } else { live + live / 5 };
        if !sealed || live == 0 || taken < limit + self.config.compact_waste_min {
            return Ok(0);
        }
        self.compact(extent, live).await
    }

    /// Compacts an extent; the caller holds its change lock. The steps are copy, sync, rename, and
    /// a sync of the folder, so a crash leaves the old file or the new one.
    async fn compact(&self, extent: &Arc<Extent>, live: u64) -> Result<u64, Error> {
        self.health.check()?;
        // A compaction frees space, so it may use the space that is reserved for the index.
        let kind = ExtentKind::Log;
        self.space.admit(&*self.disk, &self.env, &self.config, kind, live).await?;
        let alive = extent.alive();
        let frames = Frames::at_once(alive);
        let CopiedFile { slot, map, file } = self.copy_renamed(extent, self, frames).await?;
        {
            let mut state = extent.state();
            state.slot = slot;
            state.slot_unsynced = false;
            let was_open = state.file.is_some();
            state.file = was_open.then_some(file);
            state.map = was_open.then(|| Arc::new(map));
            state.rewrites += 1;
        }
        self.sync_folder(&folder_of(extent.id)).await?;
        self.metrics.compactions.inc();
        self.metrics.compacted_bytes.inc_by(live);
        tracing::debug!(extent = %extent.id, live, "extent compacted");
        Ok(live)
    }

    /// Copies these frames of a sealed extent to another disk, without those that are freed
    /// meanwhile. The copy and its name are durable.
    pub(crate) async fn copy_under_its_name(
        &self,
        extent: &Arc<Extent>,
        to: &Self,
        frames: Frames,
    ) -> Result<CopiedFile, Error> {
        let copied = self.copy_renamed(extent, to, frames).await?;
        to.sync_folder(&folder_of(extent.id)).await?;
        Ok(copied)
    }

    /// Copies these frames to a durable file and gives it the extent's name on disk `to`. The name
    /// is not durable yet.
    async fn copy_renamed(
        &self,
        extent: &Arc<Extent>,
        to: &Self,
        frames: Frames,
    ) -> Result<CopiedFile, Error> {
        let path = unfinished_path(extent);
        let read_back = frames.read_back;
        let copying = async {
            let copied = self.copy_frames(extent, to, frames).await?;
            if read_back {
                to.verify_copy(extent, &copied).await?;
            }
            Ok(copied)
        };
        let copied = match copying.await {
            Ok(copied) => copied,
            Err(error) => {
                match to.disk.remove(&path).await {
                    Ok(()) | Err(DiskError::NotFound { .. }) => {}
                    Err(failed) => drop(to.poison("remove", &failed)),
                }
                return Err(error);
            }
        };
        let renamed = to.disk.rename(&path, &path_of(extent.id)).await;
        renamed.map_err(|e| to.poison("rename", &e))?;
        Ok(copied)
    }

    /// Copies these frames to a durable file under a temporary name. The caller does not need the
    /// change lock. Frames of a sealed extent never change, and its open file and map stay readable
    /// when a compaction or a move replaces them. Only a free changes the file: it punches pages of
    /// frames that are already marked as dead.
    async fn copy_frames(
        &self,
        extent: &Arc<Extent>,
        to: &Self,
        frames: Frames,
    ) -> Result<CopiedFile, Error> {
        let body = self.body(extent).await?;
        let page =
            body.file.read_at(0, index(DATA_AT)).await.map_err(|e| unreadable(extent, &e))?;
        let (Some(header), Some(old)) = (Header::parse(&page), Slot::parse(&page)) else {
            return Err(extent.corrupt(ExtentOffset::START));
        };
        if !old.sealed {
            return Err(extent.corrupt(ExtentOffset::START));
        }
        self.assert_same_end(extent, &old)?;
        let file =
            to.disk.create(&unfinished_path(extent)).await.map_err(|e| to.copy_failed(&e))?;
        let mut walker = Walker::new(body, extent.id);
        let mut copy = CopyWriter {
            file,
            at: FileOffset::new(DATA_AT),
            pieces: Vec::new(),
            waiting: 0,
            entries: Vec::new(),
        };
        for range in frames.ranges {
            let mut at = range.start;
            while at < range.end {
                let read = read_frame(&mut walker, at).await;
                // If the frame is not dead after the read, it was not punched before the read.
                if let Some(dead) = extent.dead_at(at) {
                    at = dead.end;
                    continue;
                }
                // A damaged frame ends the copy. The extent stays as it is, for the operator.
                let bytes =
                    read.map_err(|e| unreadable(extent, &e))?.ok_or_else(|| extent.corrupt(at))?;
                let end = at + size(bytes.len());
                let written = copy.push(at..end, bytes).await.map_err(|e| to.copy_failed(&e))?;
                pause(&self.env, written, frames.pace).await;
                at = end;
            }
        }
        let written = copy.flush().await.map_err(|e| to.copy_failed(&e))?;
        if written > 0 {
            // An extent may be smaller than the bytes of a millisecond; it still costs a pause.
            pause(&self.env, written.max(frames.pace / 1000), frames.pace).await;
        }
        to.finish(extent, header, old, copy).await
    }

    /// Completes a copy: writes its map and its first page, and syncs it.
    async fn finish(
        &self,
        extent: &Extent,
        header: Header,
        old: Slot,
        mut copy: CopyWriter,
    ) -> Result<CopiedFile, Error> {
        let failed = |error: DiskError| self.copy_failed(&error);
        let map = Map::new(std::mem::take(&mut copy.entries));
        let bytes = map.encode();
        let epoch = extent.state().slot.epoch;
        let slot = Slot {
            sequence: old.sequence + 1,
            epoch,
            padding: 0,
            padding_crc: Crc32c::EMPTY,
            map: u32::try_from(map.len()).map_err(|_| Error::Full)?,
            map_crc: Crc32c::of(&bytes),
            map_at: copy.at,
            ..old
        };
        let again = Slot { sequence: slot.sequence + 1, ..slot };
        copy.file.write_at(copy.at.get(), vec![bytes]).await.map_err(failed)?;
        self.metrics.fsyncs.inc();
        let page = header.page_with(&[slot, again]);
        copy.file.write_sync(0, vec![page]).await.map_err(failed)?;
        Ok(CopiedFile { slot: again, map, file: copy.file })
    }

    /// The error of a failed write to a copy. A full disk is not poisoned.
    fn copy_failed(&self, error: &DiskError) -> Error {
        match error {
            DiskError::Full => Error::Full,
            DiskError::NotFound { .. }
            | DiskError::TooManyFiles { .. }
            | DiskError::Io { .. }
            | DiskError::Locked { .. } => self.poison("compaction", error),
        }
    }
}

/// The path of an incomplete copy of an extent.
fn unfinished_path(extent: &Extent) -> String {
    format!("{}{UNFINISHED}", path_of(extent.id))
}

/// The bytes of the frame at a logical offset; `None` if there is no intact frame.
async fn read_frame(walker: &mut Walker, at: ExtentOffset) -> Result<Option<Bytes>, DiskError> {
    let Found::Frame { end } = walker.examine(at).await? else { return Ok(None) };
    let is_verified = walker.holds(at, end);
    let bytes = walker.read(at, end - at).await?;
    // The frame was read from the file a second time, so it is verified a second time before it is
    // copied.
    if !is_verified && walker.examine(at).await? != (Found::Frame { end }) {
        return Ok(None);
    }
    Ok(Some(bytes).filter(|bytes| size(bytes.len()) == end - at))
}

impl CopyWriter {
    /// Adds the frame with this logical range. Returns the bytes that this call wrote to the file.
    async fn push(&mut self, range: Range<ExtentOffset>, bytes: Bytes) -> Result<u64, DiskError> {
        match self.entries.last_mut().filter(|last| last.range.end == range.start) {
            Some(last) => last.range.end = range.end,
            None => self.entries.push(Entry { range, at: self.at + self.waiting }),
        }
        self.waiting += size(bytes.len());
        self.pieces.push(bytes);
        if self.waiting >= PIECE { self.flush().await } else { Ok(0) }
    }

    /// Writes the frames that wait in memory. Returns their bytes.
    async fn flush(&mut self) -> Result<u64, DiskError> {
        if self.waiting > 0 {
            self.file.write_at(self.at.get(), std::mem::take(&mut self.pieces)).await?;
        }
        let written = std::mem::take(&mut self.waiting);
        self.at = self.at + written;
        Ok(written)
    }
}
