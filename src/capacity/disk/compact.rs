//! Compaction: small dead frames share pages with live ones, so holes cannot win all their space.
//! The live frames of a sealed extent are copied to a new file that takes the old one's name.
//! Logical offsets stay: a map tells where they are.

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
use crate::capacity::units::{index, size};
use crate::env::{DiskError, DiskFile};
use crate::types::Crc32c;

/// How the name of a file that is not complete ends; a start removes those.
pub(crate) const UNFINISHED: &str = ".new";

/// Bytes copied at a time.
const PIECE: u64 = 1024 * 1024;

/// What is copied of an extent, and how fast.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    /// Ranges of whole frames, in order.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Bytes a second; 0 is as fast as it goes.
    pub(crate) pace: u64,
    /// Whether the copy is read back and verified before it takes the extent's name.
    pub(crate) read_back: bool,
}

impl Frames {
    /// As fast as it goes, for a copy that has the extent's turn.
    pub(crate) fn at_once(ranges: Vec<Range<u64>>) -> Self {
        Self { ranges, pace: 0, read_back: false }
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// A durable file with frames of an extent, before or after it takes the extent's name.
pub(crate) struct CopiedFile {
    pub(crate) slot: Slot,
    pub(crate) map: Map,
    pub(crate) file: Arc<dyn DiskFile>,
}

/// A new file being filled.
struct Copy {
    file: Arc<dyn DiskFile>,
    /// Where in it the next byte goes.
    at: u64,
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
                    // Nobody may free more of it: tried again when there is space.
                    Err(Error::Full) => self.mark_sparse(extent),
                    // What looks damaged may be freed; the audit that says so frees it again, which
                    // makes the extent sparse once more.
                    Err(error @ Error::Corrupt { .. }) if extent.state().frees.may_lack_any() => {
                        tracing::debug!(%error, "an extent is not compacted before the audit");
                    }
                    Err(error) => tracing::warn!(%error, "an extent could not be compacted"),
                }
            }
        }
    }

    /// Compacts an extent if that wins enough space. Returns the bytes copied.
    pub(crate) async fn compact_if_sparse(&self, extent: &Arc<Extent>) -> Result<u64, Error> {
        let _turn = extent.turn.lock().await;
        if extent.state().status == Status::Removed {
            return Ok(0);
        }
        let body = self.body(extent).await?;
        let taken = body.file.allocated().await.map_err(|e| unreadable(extent, &e))?;
        let (sealed, live, end) = {
            let state = extent.state();
            (state.slot.sealed, state.live(), state.end)
        };
        // While more than half is alive copying it wins little: wait for more frees.
        let limit = if live > end / 2 { live + live / 2 } else { live + live / 5 };
        if !sealed || live == 0 || taken < limit + self.config.compact_waste_min {
            return Ok(0);
        }
        self.compact(extent, live).await
    }

    /// The compaction; the caller holds the turn. Copy, sync, rename, sync the folder: a crash
    /// leaves one or the other.
    async fn compact(&self, extent: &Arc<Extent>, live: u64) -> Result<u64, Error> {
        self.health.check()?;
        // It is freeing, so it may use what the index may.
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
        tracing::debug!(extent = %extent.id, live, "compacted");
        Ok(live)
    }

    /// Copies these frames of a sealed extent to another disk. The copy and its name are durable.
    /// It lacks frames that were freed meanwhile.
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

    /// Writes these frames to a durable file that takes the extent's name on disk `to`; the name
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

    /// The caller need not have the turn. Frames of a sealed extent never change; the file and its
    /// map belong together and stay readable when a compaction or a move puts others in place. Only
    /// a free changes the file: it takes away pages of frames that were marked as dead before.
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
            return Err(extent.corrupt(0));
        };
        if !old.sealed {
            return Err(extent.corrupt(0));
        }
        self.assert_same_end(extent, &old)?;
        let file =
            to.disk.create(&unfinished_path(extent)).await.map_err(|e| to.copy_failed(&e))?;
        let mut walker = Walker::new(body, extent.id);
        let mut copy =
            Copy { file, at: DATA_AT, pieces: Vec::new(), waiting: 0, entries: Vec::new() };
        for range in frames.ranges {
            let mut at = range.start;
            while at < range.end {
                let read = read_frame(&mut walker, at).await;
                // What is not marked as dead after the read was whole when it was read.
                if let Some(dead) = extent.dead_at(at) {
                    at = dead.end;
                    continue;
                }
                // Damage is not copied as if it were data. The extent stays for the operator.
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
            // Many extents are smaller than one piece, and some than the bytes of a millisecond.
            pause(&self.env, written.max(frames.pace / 1000), frames.pace).await;
        }
        to.finish(extent, header, old, copy).await
    }

    /// Completes a copy that is written but for what says where its frames are.
    async fn finish(
        &self,
        extent: &Extent,
        header: Header,
        old: Slot,
        mut copy: Copy,
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
        copy.file.write_at(copy.at, vec![bytes]).await.map_err(failed)?;
        self.metrics.fsyncs.inc();
        let page = header.page_with(&[slot, again]);
        copy.file.write_sync(0, vec![page]).await.map_err(failed)?;
        Ok(CopiedFile { slot: again, map, file: copy.file })
    }

    /// A full disk only means that there is no compaction now.
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

/// The name of a copy of an extent that is not complete.
fn unfinished_path(extent: &Extent) -> String {
    format!("{}{UNFINISHED}", path_of(extent.id))
}

/// The bytes of the frame at a logical offset; `None` unless a whole and good one is there.
async fn read_frame(walker: &mut Walker, at: u64) -> Result<Option<Bytes>, DiskError> {
    let Found::Frame { end } = walker.look(at).await? else { return Ok(None) };
    let is_verified = walker.holds(at, end);
    let bytes = walker.read(at, end - at).await?;
    // What was read again is verified again: these bytes are written elsewhere.
    if !is_verified && walker.look(at).await? != (Found::Frame { end }) {
        return Ok(None);
    }
    Ok(Some(bytes).filter(|bytes| size(bytes.len()) == end - at))
}

impl Copy {
    /// Adds the frame with this logical range. Returns the bytes written now.
    async fn push(&mut self, range: Range<u64>, bytes: Bytes) -> Result<u64, DiskError> {
        match self.entries.last_mut().filter(|last| last.range.end == range.start) {
            Some(last) => last.range.end = range.end,
            None => self.entries.push(Entry { range, at: self.at + self.waiting }),
        }
        self.waiting += size(bytes.len());
        self.pieces.push(bytes);
        if self.waiting >= PIECE { self.flush().await } else { Ok(0) }
    }

    /// Writes what waits. Returns its bytes.
    async fn flush(&mut self) -> Result<u64, DiskError> {
        if self.waiting > 0 {
            self.file.write_at(self.at, std::mem::take(&mut self.pieces)).await?;
        }
        let written = std::mem::take(&mut self.waiting);
        self.at += written;
        Ok(written)
    }
}
