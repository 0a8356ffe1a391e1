//! The parts of frames that a read needs, and their verification by the reader.

#![deny(clippy::indexing_slicing)]

use std::ops::Range;

use bytes::Bytes;

use crate::capacity::extent::frame::CHUNK;
use crate::capacity::extent::frame::Head;
use crate::capacity::extent::frame::LocationFrame;
use crate::capacity::extent::frame::OFFSET_MAX;
use crate::capacity::extent::frame::Verified;
use crate::capacity::extent::frame::frames_in;
use crate::capacity::units::index;
use crate::capacity::units::size;
use crate::types::Crc32c;
use crate::types::ExtentOffset;
use crate::types::Location;

/// A part of one frame, as the node that stores it sends it to a reader. It is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePart {
    /// Header and checksum table.
    pub head: Bytes,
    /// The chunks of 16 KiB of payload that have the wanted bytes.
    pub chunks: Bytes,
}

/// The bytes of a frame that a read needs.
#[derive(Clone, Debug)]
pub(crate) struct WantedPart {
    pub(crate) frame: LocationFrame,
    /// Payload bytes that the caller wants.
    wanted: Range<u64>,
    /// The chunks that have them.
    pub(crate) chunks: Range<u64>,
}

/// The parts of frames that have bytes `range` of a location's payload.
pub(crate) fn parts_of(
    location: &Location,
    range: &Range<u64>,
) -> impl Iterator<Item = WantedPart> {
    let all = range.clone();
    frames_in(location, range).map(move |frame| {
        let end = (all.end - frame.at).min(frame.len);
        let wanted = all.start.max(frame.at) - frame.at..end;
        let chunks =
            wanted.start / CHUNK * CHUNK..(wanted.end.div_ceil(CHUNK) * CHUNK).min(frame.len);
        WantedPart { frame, wanted, chunks }
    })
}

/// Whether these can be a location and a range of its payload. A damaged row may name others, with
/// which offsets would overflow.
pub(crate) fn is_sane(location: &Location, range: &Range<u64>) -> bool {
    let len = location.len.get();
    len > 0
        && len <= u64::MAX / 4
        && location.offset <= OFFSET_MAX
        && range.start <= range.end
        && range.end <= len
}

/// Verifies the parts of a read in their order (I13).
#[derive(Debug)]
pub(crate) struct PartReader<'a> {
    location: &'a Location,
    /// The checksum of the frames so far.
    crc: Option<Crc32c>,
    pieces: Vec<Verified>,
}

impl<'a> PartReader<'a> {
    /// A reader that has no part yet.
    pub(crate) fn new(location: &'a Location) -> Self {
        Self { location, crc: None, pieces: Vec::new() }
    }

    /// Takes the next part. The error is where the damaged frame starts.
    pub(crate) fn take(&mut self, want: &WantedPart, part: FramePart) -> Result<(), ExtentOffset> {
        let WantedPart { frame, wanted, chunks: stored } = want;
        let damaged = || frame.offset;
        let head =
            Head::parse(&part.head, self.location.extent, frame.offset).ok_or_else(damaged)?;
        let complete = size(part.chunks.len()) == stored.end - stored.start;
        let alone = frame.len == self.location.len.get();
        if head.len != frame.len || !complete || alone && head.crc != self.location.crc {
            return Err(frame.offset);
        }
        let chunks = head.verified(stored.start / CHUNK, part.chunks);
        let chunks = chunks.ok_or_else(damaged)?;
        let (from, to) = (wanted.start - stored.start, wanted.end - stored.start);
        self.pieces.push(chunks.slice(index(from)..index(to)));
        self.crc = Some(self.crc.map_or(head.crc, |crc| crc.combine(head.crc, frame.len)));
        Ok(())
    }

    /// The wanted bytes, after the last part of bytes `range` of the location.
    pub(crate) fn finish(self, range: &Range<u64>) -> Result<Vec<Verified>, ExtentOffset> {
        let whole = *range == (0..self.location.len.get());
        if whole && self.crc.is_some_and(|crc| crc != self.location.crc) {
            return Err(self.location.offset);
        }
        Ok(self.pieces)
    }
}
