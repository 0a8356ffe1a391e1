//! Reads. Every byte served is verified against the checksum table of its frame, and the frame
//! against the location.

#![deny(clippy::indexing_slicing)]

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::Error;
use crate::capacity::LogFrame;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::frame::{
    FRAME_PAYLOAD_MAX, HEAD_MAX, HEADER, Head, RawFrame, Verified, frame_end, frames_of, head_len,
};
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::extent::part::{FramePart, PartReader, WantedPart, is_sane, parts_of};
use crate::capacity::units::{index, offset_up, size};
use crate::types::ExtentOffset;
use crate::types::Location;

/// If the wanted chunks begin within this many payload bytes of a frame, they are read together
/// with the head.
const TOGETHER_MAX: u64 = 64 * 1024;

/// The most bytes of frames that one call returns, and a frame more.
const RAW_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes that a log replay reads at a time.
const WINDOW: u64 = 256 * 1024;

/// A frame that was read and verified.
struct GoodFrame {
    offset: ExtentOffset,
    /// Header and checksum table.
    head: Bytes,
    payload: Verified,
    /// Where the next frame is expected.
    next: ExtentOffset,
}

impl Store {
    /// Reads payload bytes `range` of a location; see [`crate::capacity::Capacity::read`].
    pub(crate) async fn read(
        &self,
        extent: &Arc<Extent>,
        location: &Location,
        range: Range<u64>,
    ) -> Result<Vec<Bytes>, Error> {
        let read = self.read_verified(extent, location, range).await;
        let served = |pieces: Vec<Verified>| -> Vec<Bytes> {
            pieces.into_iter().map(Verified::into_bytes).collect()
        };
        let result = read.map(served);
        match &result {
            Ok(pieces) => {
                self.metrics.reads.inc();
                self.metrics.read_bytes.inc_by(pieces.iter().map(|p| size(p.len())).sum());
            }
            Err(Error::Corrupt { offset, .. }) => {
                self.metrics.corrupt_frames.inc();
                let offset = offset.get();
                tracing::error!(
                    extent = %extent.id, offset,
                    "a read met a damaged or missing frame; `blockyard check` lists all damage"
                );
            }
            Err(_) => {}
        }
        result
    }

    async fn read_verified(
        &self,
        extent: &Arc<Extent>,
        location: &Location,
        range: Range<u64>,
    ) -> Result<Vec<Verified>, Error> {
        check_location(extent, location, &range)?;
        let mut reader = PartReader::new(location);
        for part in parts_of(location, &range) {
            let bytes = self.read_part(extent, &part).await?;
            reader.take(&part, bytes).map_err(|offset| extent.corrupt(offset))?;
        }
        reader.finish(&range).map_err(|offset| extent.corrupt(offset))
    }

    /// The parts of frames that have bytes `range` of a location. They are not verified: the
    /// reader does that.
    pub(crate) async fn read_parts(
        &self,
        extent: &Arc<Extent>,
        location: &Location,
        range: Range<u64>,
    ) -> Result<Vec<FramePart>, Error> {
        check_location(extent, location, &range)?;
        let mut parts = Vec::new();
        for part in parts_of(location, &range) {
            parts.push(self.read_part(extent, &part).await?);
        }
        Ok(parts)
    }

    async fn read_part(
        &self,
        extent: &Arc<Extent>,
        WantedPart { frame, chunks: stored, .. }: &WantedPart,
    ) -> Result<FramePart, Error> {
        let head_len = head_len(frame.len);
        if stored.start > TOGETHER_MAX {
            let head = self.fetch(extent, frame.offset, head_len).await?;
            let at = frame.offset + head_len + stored.start;
            let chunks = self.fetch(extent, at, stored.end - stored.start).await?;
            return Ok(FramePart { head, chunks });
        }
        let len = head_len + stored.end;
        let bytes = self.fetch(extent, frame.offset, len).await?;
        if size(bytes.len()) < len {
            return Err(extent.corrupt(frame.offset));
        }
        let chunks = bytes.slice(index(head_len + stored.start)..);
        Ok(FramePart { head: bytes.slice(..index(head_len)), chunks })
    }

    /// Reads the frame at or after `offset`; see [`crate::capacity::Capacity::next_frame`].
    pub(crate) async fn next_frame(
        &self,
        extent: &Arc<Extent>,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        let Some(GoodFrame { offset, head: _, payload, next }) =
            self.good_frame(extent, offset).await?
        else {
            return Ok(None);
        };
        Ok(Some(LogFrame { offset, payload: payload.into_bytes(), next }))
    }

    /// Reads whole frames from `from` on, as they lie in the extent, until they have `bytes_max`
    /// bytes or the next one is damaged. No frame means that the extent has none there.
    pub(crate) async fn raw_frames(
        &self,
        extent: &Arc<Extent>,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error> {
        let (mut frames, mut bytes, mut at) = (Vec::new(), 0, from);
        while bytes < bytes_max.clamp(1, RAW_BYTES_MAX) {
            let found = match self.good_frame(extent, at).await {
                Err(_) if !frames.is_empty() => None,
                found => found?,
            };
            let Some(GoodFrame { offset, head, payload, next }) = found else { break };
            let whole = [&head[..], &payload.into_bytes()[..]].concat();
            bytes += size(whole.len());
            frames.push(RawFrame { offset, bytes: Bytes::from(whole) });
            at = next;
        }
        Ok(frames)
    }

    /// The frame at or after `offset`; `None` at the end of the extent.
    async fn good_frame(
        &self,
        extent: &Arc<Extent>,
        offset: ExtentOffset,
    ) -> Result<Option<GoodFrame>, Error> {
        let Some(offset) = skip_dead(extent, offset)? else {
            extent.set_window(None);
            return Ok(None);
        };
        for start in [offset, offset_up(offset)] {
            if start > offset && !self.is_padding(extent, offset..start).await? {
                break;
            }
            let header = self.fetch_ahead(extent, start, HEADER).await?;
            let Some(len) = Head::claimed_len(&header) else { continue };
            let bytes = self.fetch_ahead(extent, start, head_len(len)).await?;
            let Some(head) = Head::parse(&bytes, extent.id, start) else { continue };
            let payload = self.fetch_ahead(extent, start + head.head_len(), head.len).await?;
            if size(payload.len()) != head.len {
                break;
            }
            let Some(payload) = head.verified(0, payload) else { break };
            let next = frame_end(start, head.len);
            return Ok(Some(GoodFrame { offset: start, head: bytes, payload, next }));
        }
        self.metrics.corrupt_frames.inc();
        Err(extent.corrupt(offset))
    }

    /// Whether bytes before a page may be padding that no list names. Otherwise a damaged frame is
    /// there: a replay, or who copies the extent, would leave it out.
    async fn is_padding(
        &self,
        extent: &Arc<Extent>,
        gap: Range<ExtentOffset>,
    ) -> Result<bool, Error> {
        let bytes = self.fetch_ahead(extent, gap.start, gap.end - gap.start).await?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// Reads `len` bytes for a replay, and the bytes that follow them: records are small and are
    /// read in order.
    async fn fetch_ahead(
        &self,
        extent: &Arc<Extent>,
        offset: ExtentOffset,
        len: u64,
    ) -> Result<Bytes, Error> {
        debug_assert!(len <= FRAME_PAYLOAD_MAX.max(HEAD_MAX), "a frame is not that long");
        if let Some(bytes) = extent.windowed(offset, len) {
            return Ok(bytes);
        }
        let written = extent.state().written;
        if offset + len > written {
            return match self.fetch(extent, offset, len).await {
                // The bytes are beyond the last append. The caller decides whether that is damage.
                Err(Error::Corrupt { .. }) => Ok(Bytes::new()),
                other => other,
            };
        }
        let bytes = self.fetch(extent, offset, len.max(WINDOW)).await?;
        let have = index(len.min(size(bytes.len())));
        extent.set_window(Some((offset, bytes.clone())));
        Ok(bytes.slice(..have))
    }
}

/// The offset of the next live byte; `None` at the end of the extent.
fn skip_dead(extent: &Extent, mut offset: ExtentOffset) -> Result<Option<ExtentOffset>, Error> {
    let state = extent.state();
    if state.status == Status::Removed {
        return Err(extent.missing());
    }
    while let Some(dead) = state.dead.at(offset) {
        offset = dead.end;
    }
    Ok((offset < state.end).then_some(offset))
}

/// Checks a location, which comes from an index row. An impossible one is reported as damage.
fn check_location(extent: &Extent, location: &Location, range: &Range<u64>) -> Result<(), Error> {
    if !is_sane(location, range) {
        return Err(extent.corrupt(location.offset));
    }
    let frames = frames_of(location);
    let state = extent.state();
    if state.status == Status::Removed {
        return Err(extent.missing());
    }
    if frames.end > state.end || state.dead.overlaps(&frames) {
        return Err(extent.corrupt(location.offset));
    }
    Ok(())
}
