//! Frames: the encoding of payload in an extent. The layout is in `api-spec/extent.md`; only this
//! file computes and parses it.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};

use crate::capacity::Payload;
use crate::capacity::units::{
    PAGE, get_crc, get_u16, get_u32, get_u64, index, offset_up, page_up, size, zeros,
};
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::Crc32cHasher;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

mod received;

pub(crate) use received::Expected;
pub use received::RawFrame;

/// The most payload bytes of one frame. A longer payload takes several frames, all full but the
/// last.
pub const FRAME_PAYLOAD_MAX: u64 = 1024 * 1024;

/// Offsets beyond this are of no extent. Below it, the end of a frame does not overflow.
pub(crate) const OFFSET_MAX: ExtentOffset = ExtentOffset::new(u64::MAX / 4);

/// Payload bytes under one checksum of a frame's table.
pub(crate) const CHUNK: u64 = 16 * 1024;

/// A frame's fixed header, bytes; its checksum table follows.
pub(crate) const HEADER: u64 = 48;

/// Bytes of the longest header and table.
pub(crate) const HEAD_MAX: u64 = head_len(FRAME_PAYLOAD_MAX);

/// Frames with at least this much payload start and end on a page, so that freeing one leaves no
/// partial page.
const ALIGNED_MIN: u64 = 32 * 1024;

/// Bytes a full frame takes.
const FULL_FRAME: u64 = page_up(HEAD_MAX + FRAME_PAYLOAD_MAX);

const MAGIC: u32 = u32::from_le_bytes(*b"BYFR");
const VERSION: u16 = 1;

const _: () = assert!(FRAME_PAYLOAD_MAX.is_multiple_of(CHUNK) && FULL_FRAME.is_multiple_of(PAGE));

/// Header and table of a frame with this much payload, bytes.
pub(crate) const fn head_len(payload: u64) -> u64 {
    HEADER + 4 * payload.div_ceil(CHUNK)
}

/// Where a payload's first frame starts in an extent that ends at `end`.
pub(crate) const fn start_at(end: ExtentOffset, payload: u64) -> ExtentOffset {
    if payload >= ALIGNED_MIN { offset_up(end) } else { end }
}

/// Where one frame that starts at `start` ends, its padding included.
pub(crate) const fn frame_end(start: ExtentOffset, payload: u64) -> ExtentOffset {
    let end = ExtentOffset::new(start.get() + head_len(payload) + payload);
    if payload >= ALIGNED_MIN { offset_up(end) } else { end }
}

/// Where the frames of a payload of any length that starts at `start` end, padding included.
pub(crate) const fn payload_end(start: ExtentOffset, len: u64) -> ExtentOffset {
    let full = ExtentOffset::new(start.get() + len / FRAME_PAYLOAD_MAX * FULL_FRAME);
    match len % FRAME_PAYLOAD_MAX {
        0 => full,
        rest => frame_end(full, rest),
    }
}

/// Where an extent that ends at `end` will end after payloads of these lengths. A writer that does
/// not wait for each acknowledgement uses it as the offset of the next append.
#[must_use]
pub fn end_after(end: ExtentOffset, payload_lens: &[u64]) -> ExtentOffset {
    payload_lens.iter().fold(end, |end, &len| payload_end(start_at(end, len), len))
}

/// The logical range that the frames of a location cover.
pub(crate) fn frames_of(location: &Location) -> Range<ExtentOffset> {
    location.offset..payload_end(location.offset, location.len.get())
}

/// Merges two adjacent locations into one. `None` unless `a` consists of full frames and `b` starts
/// where `a` ends.
///
/// So a stream of 1 MiB appends becomes one entry of a row, not hundreds.
#[must_use]
pub fn merge(a: &Location, b: &Location) -> Option<Location> {
    let adjacent = a.extent == b.extent
        && a.len.get().is_multiple_of(FRAME_PAYLOAD_MAX)
        && frames_of(a).end == b.offset;
    adjacent.then(|| Location {
        extent: a.extent,
        offset: a.offset,
        len: a.len + b.len,
        crc: a.crc.combine(b.crc, b.len.get()),
    })
}

/// One frame of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocationFrame {
    /// Where the frame starts.
    pub(crate) offset: ExtentOffset,
    /// Its payload length.
    pub(crate) len: u64,
    /// Where its payload starts within the payload of the location.
    pub(crate) at: u64,
}

/// The frames that hold payload bytes `range` of a location.
pub(crate) fn frames_in(
    location: &Location,
    range: &Range<u64>,
) -> impl Iterator<Item = LocationFrame> {
    let (offset, len) = (location.offset, location.len.get());
    let first = range.start / FRAME_PAYLOAD_MAX;
    let last = if range.is_empty() { first } else { (range.end - 1) / FRAME_PAYLOAD_MAX + 1 };
    (first..last).map(move |number| {
        let at = number * FRAME_PAYLOAD_MAX;
        LocationFrame {
            offset: offset + number * FULL_FRAME,
            len: (len - at).min(FRAME_PAYLOAD_MAX),
            at,
        }
    })
}

/// Where bytes `range` of a location's payload begin in the extent, if they are the payload of
/// whole frames; `None` if they are not.
#[must_use]
pub fn part_of_frames(location: &Location, range: &Range<u64>) -> Option<ExtentOffset> {
    let len = location.len.get();
    let ends_frame = range.end == len || range.end.is_multiple_of(FRAME_PAYLOAD_MAX);
    let is_part = range.start < range.end && range.end <= len;
    (is_part && ends_frame && range.start.is_multiple_of(FRAME_PAYLOAD_MAX))
        .then(|| location.offset + range.start / FRAME_PAYLOAD_MAX * FULL_FRAME)
}

/// A payload with its checksums. Its frames can be encoded when its offset is known.
#[derive(Debug)]
pub(crate) struct Prepared {
    len: u64,
    frames: Vec<PreparedFrame>,
}

#[derive(Debug)]
struct PreparedFrame {
    pieces: Vec<Bytes>,
    len: u64,
    table: Vec<Crc32c>,
    crc: Crc32c,
}

impl Prepared {
    /// Splits a payload into frames and computes the checksum of each chunk. Copies no bytes.
    pub(crate) fn new(payload: Payload) -> Self {
        let mut frames = Vec::new();
        let mut frame = PreparedFrame::empty();
        let mut len = 0;
        for mut piece in payload {
            len += size(piece.len());
            while !piece.is_empty() {
                let room = index(FRAME_PAYLOAD_MAX - frame.len);
                let part = piece.split_to(room.min(piece.len()));
                frame.len += size(part.len());
                frame.pieces.push(part);
                if frame.len == FRAME_PAYLOAD_MAX {
                    frames.push(std::mem::replace(&mut frame, PreparedFrame::empty()).summed());
                }
            }
        }
        if frame.len > 0 {
            frames.push(frame.summed());
        }
        assert!(len > 0, "an empty payload has no location");
        Self { len, frames }
    }
}

impl PreparedFrame {
    fn empty() -> Self {
        Self { pieces: Vec::new(), len: 0, table: Vec::new(), crc: Crc32c::EMPTY }
    }

    fn summed(mut self) -> Self {
        self.table = chunk_sums(&self.pieces);
        self.crc = combine_chunks(&self.table, self.len);
        self
    }

    fn head(&self, extent: ExtentId, epoch: Epoch, offset: ExtentOffset) -> Bytes {
        let mut head = BytesMut::with_capacity(index(head_len(self.len)));
        head.put_u32_le(MAGIC);
        head.put_u16_le(VERSION);
        head.put_u16_le(u16::try_from(self.table.len()).expect("at most 64 chunks"));
        head.put_u64_le(extent.get());
        head.put_u64_le(offset.get());
        head.put_u32_le(u32::try_from(self.len).expect("at most 1 MiB"));
        head.put_u32_le(self.crc.get());
        head.put_u64_le(epoch.get());
        head.put_u32_le(0);
        let mut crc = Crc32cHasher::default();
        crc.update(&head);
        let mut table = BytesMut::with_capacity(4 * self.table.len());
        for sum in &self.table {
            table.put_u32_le(sum.get());
        }
        crc.update(&table);
        head.put_u32_le(crc.finish().get());
        head.extend_from_slice(&table);
        head.freeze()
    }
}

/// The encoded frames of several payloads: contiguous bytes to write at `start`, and the locations
/// of the payloads.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The logical offset of the first byte.
    pub(crate) start: ExtentOffset,
    /// The bytes, with zero padding between frames. Padding after the last frame is not written,
    /// since unwritten space reads as zeros.
    pub(crate) pieces: Vec<Bytes>,
    /// Their length.
    pub(crate) bytes: u64,
    /// Where the extent ends after the write, padding after the last frame included.
    pub(crate) end: ExtentOffset,
    /// Padding before aligned frames. No location covers it, so it is dead from the start.
    pub(crate) padding: Vec<Range<ExtentOffset>>,
    /// One for each payload.
    pub(crate) locations: Vec<Location>,
    /// Frames.
    pub(crate) frames: u64,
    /// Payload bytes of these frames.
    pub(crate) payload_bytes: u64,
}

/// Encodes payloads as the next frames of an extent that ends at `end`.
pub(crate) fn place(
    payloads: Vec<Prepared>,
    extent: ExtentId,
    epoch: Epoch,
    end: ExtentOffset,
) -> Placed {
    let first = payloads.first().map_or(end, |payload| start_at(end, payload.len));
    let mut placed = Placed {
        start: first,
        pieces: Vec::with_capacity(payloads.len() * 3),
        bytes: 0,
        end,
        padding: Vec::new(),
        locations: Vec::with_capacity(payloads.len()),
        frames: 0,
        payload_bytes: 0,
    };
    for payload in payloads {
        placed.payload_bytes += payload.len;
        let start = start_at(placed.end, payload.len);
        if start > placed.end {
            placed.padding.push(placed.end..start);
        }
        placed.end = start;
        let mut location =
            Location { extent, offset: start, len: ByteLen::new(0), crc: Crc32c::EMPTY };
        for frame in payload.frames {
            placed.fill_to(placed.end);
            placed.push(frame.head(extent, epoch, placed.end));
            placed.end = frame_end(placed.end, frame.len);
            placed.frames += 1;
            location.crc = location.crc.combine(frame.crc, frame.len);
            location.len = location.len + ByteLen::new(frame.len);
            for piece in frame.pieces {
                placed.push(piece);
            }
        }
        placed.locations.push(location);
    }
    placed
}

impl Placed {
    fn push(&mut self, piece: Bytes) {
        self.bytes += size(piece.len());
        self.pieces.push(piece);
    }

    fn fill_to(&mut self, offset: ExtentOffset) {
        let gap = offset - (self.start + self.bytes);
        if gap > 0 {
            self.push(zeros(gap));
        }
    }
}

/// The parsed header and checksum table of a frame. Their own checksum, the extent and the offset
/// are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Payload bytes, 1 to [`FRAME_PAYLOAD_MAX`].
    pub(crate) len: u64,
    /// Checksum of the payload.
    pub(crate) crc: Crc32c,
    /// The writer's epoch.
    pub(crate) epoch: Epoch,
    table: Vec<Crc32c>,
}

impl Head {
    /// Parses the head of the frame of `extent` at `offset`; `bytes` may be longer. `None` if there
    /// is no such frame, or its head is damaged or incomplete.
    pub(crate) fn parse(bytes: &[u8], extent: ExtentId, offset: ExtentOffset) -> Option<Self> {
        let fits = get_u32(bytes, 0)? == MAGIC
            && get_u16(bytes, 4)? == VERSION
            && get_u64(bytes, 8)? == extent.get()
            && get_u64(bytes, 16)? == offset.get();
        let len = u64::from(get_u32(bytes, 24)?);
        if !fits || len == 0 || len > FRAME_PAYLOAD_MAX {
            return None;
        }
        let table = bytes.get(index(HEADER)..index(head_len(len)))?;
        let mut crc = Crc32cHasher::default();
        crc.update(bytes.get(..44)?);
        crc.update(table);
        if crc.finish() != get_crc(bytes, 44)?
            || u64::from(get_u16(bytes, 6)?) != len.div_ceil(CHUNK)
        {
            return None;
        }
        let table = table.chunks_exact(4).filter_map(|sum| get_crc(sum, 0)).collect();
        let epoch = Epoch::new(get_u64(bytes, 32)?);
        Some(Self { len, crc: get_crc(bytes, 28)?, epoch, table })
    }

    /// The payload length in a header whose checksum is not yet verified; `None` if it is not a
    /// header.
    pub(crate) fn claimed_len(header: &[u8]) -> Option<u64> {
        let len = u64::from(get_u32(header, 24)?);
        (starts_frame(header) && len > 0 && len <= FRAME_PAYLOAD_MAX).then_some(len)
    }

    /// Bytes of header and table.
    pub(crate) fn head_len(&self) -> u64 {
        head_len(self.len)
    }

    /// Returns `chunks`, payload from the start of chunk number `first`, if they match the table.
    pub(crate) fn verified(&self, first: u64, chunks: Bytes) -> Option<Verified> {
        self.verify(first, &chunks).then_some(Verified(chunks))
    }

    /// Whether `chunks`, payload from the start of chunk number `first`, matches the table. The
    /// last chunk may be shorter only where the payload ends.
    pub(crate) fn verify(&self, first: u64, chunks: &[u8]) -> bool {
        let from = first * CHUNK;
        if chunks.is_empty() || from + size(chunks.len()) > self.len {
            return false;
        }
        let whole =
            size(chunks.len()).is_multiple_of(CHUNK) || from + size(chunks.len()) == self.len;
        whole
            && chunks
                .chunks(index(CHUNK))
                .zip(self.table.iter().skip(index(first)))
                .all(|(chunk, sum)| Crc32c::of(chunk) == *sum)
    }
}

/// Payload bytes that match the checksums of their frame (I13). Only [`Head::verified`] makes this
/// type, and only such bytes are served.
#[derive(Clone, Debug)]
pub(crate) struct Verified(Bytes);

impl Verified {
    /// A part of the bytes.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// The bytes, for the caller of a read.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// The end of the frames in `bytes`, which lie at `offset` of an extent. `None` unless all are
/// intact and contiguous, except for padding.
pub(crate) fn verify_frames(
    bytes: &[u8],
    extent: ExtentId,
    offset: ExtentOffset,
) -> Option<ExtentOffset> {
    let mut at = offset;
    while at < offset + size(bytes.len()) {
        let frame = [at, offset_up(at)].into_iter().find_map(|start| {
            let rest = bytes.get(index(start - offset)..)?;
            let head = Head::parse(rest, extent, start)?;
            let from = index(head.head_len());
            let payload = rest.get(from..from + index(head.len))?;
            head.verify(0, payload).then(|| frame_end(start, head.len))
        });
        at = frame?;
    }
    Some(at)
}

/// Whether the bytes may be the start of a frame. In a search this is cheaper than [`Head::parse`].
pub(crate) fn starts_frame(bytes: &[u8]) -> bool {
    get_u32(bytes, 0) == Some(MAGIC)
}

fn chunk_sums(pieces: &[Bytes]) -> Vec<Crc32c> {
    let mut sums = Vec::new();
    let mut partial: Option<(Crc32cHasher, u64)> = None;
    for piece in pieces {
        let mut rest: &[u8] = piece;
        while !rest.is_empty() {
            let filled = partial.as_ref().map_or(0, |(_, filled)| *filled);
            let (now, later) = rest.split_at(rest.len().min(index(CHUNK - filled)));
            rest = later;
            if filled == 0 && size(now.len()) == CHUNK {
                sums.push(Crc32c::of(now));
                continue;
            }
            let (mut crc, _) = partial.take().unwrap_or_default();
            crc.update(now);
            let filled = filled + size(now.len());
            if filled == CHUNK {
                sums.push(crc.finish());
            } else {
                partial = Some((crc, filled));
            }
        }
    }
    if let Some((crc, _)) = partial {
        sums.push(crc.finish());
    }
    sums
}

/// How one appended chunk of zeros changes each bit of a CRC. With the general method, combining
/// the 64 chunk sums of a frame would cost as much as reading its payload again.
static SHIFT: LazyLock<[u32; 32]> = LazyLock::new(|| {
    let of_bit = |bit: usize| Crc32c::new(1 << bit).combine(Crc32c::EMPTY, CHUNK).get();
    std::array::from_fn(of_bit)
});

/// The checksum of the bytes of `crc` followed by those of `chunk`, one full chunk.
fn append_chunk(crc: Crc32c, chunk: Crc32c) -> Crc32c {
    // Masks instead of branches, since the bits are unpredictable.
    let mask = |bit: usize| 0_u32.wrapping_sub(crc.get() >> bit & 1);
    let effects = SHIFT.iter().enumerate().map(|(bit, effect)| effect & mask(bit));
    Crc32c::new(effects.fold(chunk.get(), |sum, effect| sum ^ effect))
}

fn combine_chunks(table: &[Crc32c], len: u64) -> Crc32c {
    let Some((&last, whole)) = table.split_last() else { return Crc32c::EMPTY };
    let Some((&first, middle)) = whole.split_first() else { return last };
    let crc = middle.iter().fold(first, |crc, &sum| append_chunk(crc, sum));
    match len % CHUNK {
        0 => append_chunk(crc, last),
        rest => crc.combine(last, rest),
    }
}

#[cfg(test)]
mod tests;
