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
    CHUNK, FRAME_PAYLOAD_MAX, HEAD_MAX, HEADER, Head, LocationFrame, Verified, frame_end,
    frames_in, frames_of, head_len,
};
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::units::{index, offset_up, size};
use crate::types::Crc32c;
use crate::types::ExtentOffset;
use crate::types::Location;

/// If the wanted chunks begin within this many payload bytes of a frame, they are read together
/// with the head.
const TOGETHER_MAX: u64 = 64 * 1024;

/// Bytes that a log replay reads at a time.
const WINDOW: u64 = 256 * 1024;

/// The result of reading one frame.
struct ReadFrame {
    /// The checksum of the whole frame's payload.
    frame_crc: Crc32c,
    /// The requested bytes.
    wanted: Verified,
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
        let whole = range == (0..location.len.get());
        let mut crc: Option<Crc32c> = None;
        let mut pieces = Vec::new();
        for frame in frames_in(location, &range) {
            let read = self.read_location_frame(extent, &frame, &range).await?;
            if frame.len == location.len.get() && read.frame_crc != location.crc {
                return Err(extent.corrupt(frame.offset));
            }
            crc = Some(crc.map_or(read.frame_crc, |crc| crc.combine(read.frame_crc, frame.len)));
            pieces.push(read.wanted);
        }
        if whole && crc.is_some_and(|crc| crc != location.crc) {
            return Err(extent.corrupt(location.offset));
        }
        Ok(pieces)
    }

    async fn read_location_frame(
        &self,
        extent: &Arc<Extent>,
        frame: &LocationFrame,
        range: &Range<u64>,
    ) -> Result<ReadFrame, Error> {
        let corrupt = || extent.corrupt(frame.offset);
        let wanted = range.start.max(frame.at) - frame.at..(range.end - frame.at).min(frame.len);
        let first = wanted.start / CHUNK;
        let stored = first * CHUNK..(wanted.end.div_ceil(CHUNK) * CHUNK).min(frame.len);
        let head_len = head_len(frame.len);
        let (head, chunks) = if stored.start <= TOGETHER_MAX {
            let len = head_len + stored.end;
            let bytes = self.fetch(extent, frame.offset, len).await?;
            if size(bytes.len()) < len {
                return Err(corrupt());
            }
            (bytes.slice(..index(head_len)), bytes.slice(index(head_len + stored.start)..))
        } else {
            let head = self.fetch(extent, frame.offset, head_len).await?;
            let at = frame.offset + head_len + stored.start;
            (head, self.fetch(extent, at, stored.end - stored.start).await?)
        };
        let head = Head::parse(&head, extent.id, frame.offset).ok_or_else(corrupt)?;
        let complete = size(chunks.len()) == stored.end - stored.start;
        if head.len != frame.len || !complete {
            return Err(corrupt());
        }
        let chunks = head.verified(first, chunks).ok_or_else(corrupt)?;
        let from = index(wanted.start - stored.start);
        let to = index(wanted.end - stored.start);
        Ok(ReadFrame { frame_crc: head.crc, wanted: chunks.slice(from..to) })
    }

    /// Reads the frame at or after `offset`; see [`crate::capacity::Capacity::next_frame`].
    pub(crate) async fn next_frame(
        &self,
        extent: &Arc<Extent>,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        let Some(offset) = skip_dead(extent, offset)? else {
            extent.set_window(None);
            return Ok(None);
        };
        for start in [offset, offset_up(offset)] {
            let head = self.fetch_ahead(extent, start, HEADER).await?;
            let Some(head) = self.parse_ahead(extent, start, &head).await? else { continue };
            let payload = self.fetch_ahead(extent, start + head.head_len(), head.len).await?;
            if size(payload.len()) != head.len {
                break;
            }
            let Some(payload) = head.verified(0, payload) else { break };
            let next = frame_end(start, head.len);
            return Ok(Some(LogFrame { offset: start, payload: payload.into_bytes(), next }));
        }
        self.metrics.corrupt_frames.inc();
        Err(extent.corrupt(offset))
    }

    async fn parse_ahead(
        &self,
        extent: &Arc<Extent>,
        start: ExtentOffset,
        header: &[u8],
    ) -> Result<Option<Head>, Error> {
        let Some(len) = Head::claimed_len(header) else { return Ok(None) };
        let head = self.fetch_ahead(extent, start, head_len(len)).await?;
        Ok(Head::parse(&head, extent.id, start))
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
    let (offset, len) = (location.offset, location.len.get());
    let is_sane = len > 0
        && len <= u64::MAX / 4
        && offset.get() <= u64::MAX / 4
        && range.start <= range.end
        && range.end <= len;
    if !is_sane {
        return Err(extent.corrupt(offset));
    }
    let frames = frames_of(location);
    let state = extent.state();
    if state.status == Status::Removed {
        return Err(extent.missing());
    }
    if frames.end > state.end || state.dead.overlaps(&frames) {
        return Err(extent.corrupt(offset));
    }
    Ok(())
}
