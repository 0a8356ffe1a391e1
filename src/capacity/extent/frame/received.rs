//! Frames that another process encoded. They are verified before they are stored.

#![deny(clippy::indexing_slicing)]

use std::collections::VecDeque;

use bytes::Bytes;
use bytes::BytesMut;

use super::HEADER;
use super::Head;
use super::OFFSET_MAX;
use super::Placed;
use super::chunk_sums;
use super::frame_end;
use super::head_len;
use super::start_at;
use super::starts_frame;
use crate::capacity::api::LogFrame;
use crate::capacity::units::PAGE;
use crate::capacity::units::index;
use crate::capacity::units::offset_up;
use crate::capacity::units::size;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// A frame as it lies in an extent: header, checksum table and payload, without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFrame {
    /// Where it starts.
    pub offset: ExtentOffset,
    /// Its bytes. The receiver verifies them.
    pub bytes: Bytes,
}

impl RawFrame {
    /// The frame, if all its checksums match and it is one of this extent (I13).
    pub(crate) fn verified(&self, extent: ExtentId) -> Option<LogFrame> {
        if self.offset > OFFSET_MAX {
            return None;
        }
        let head = Head::parse(&self.bytes, extent, self.offset)?;
        let (from, len) = (index(head.head_len()), index(head.len));
        if self.bytes.len() != from + len {
            return None;
        }
        let payload = head.verified(0, self.bytes.slice(from..))?.into_bytes();
        Some(LogFrame { offset: self.offset, payload, next: frame_end(self.offset, head.len) })
    }
}

/// What received frames must fit to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The extent.
    pub(crate) extent: ExtentId,
    /// Where it ends.
    pub(crate) end: ExtentOffset,
}

impl Placed {
    /// The frames of one append by a writer of this epoch. `pieces` begins with the first frame and
    /// ends with the payload of the last one; between frames there are zeros as in the extent.
    /// `None` if a checksum does not match, or a frame is not where this writer must put it.
    pub(crate) fn received(pieces: &[Bytes], expected: Expected, epoch: Epoch) -> Option<Self> {
        if expected.end > OFFSET_MAX {
            return None;
        }
        let mut cursor = Cursor::new(pieces);
        let mut placed = Self::nothing(expected.end);
        let first = Head::claimed_len(&cursor.peek(HEADER)?)?;
        placed.start = start_at(expected.end, first);
        let mut start = placed.start;
        loop {
            let frame = cursor.frame(expected.extent, start)?;
            if frame.epoch != epoch || start != start_at(placed.end, frame.len) {
                return None;
            }
            placed.add(start, frame);
            if cursor.left == 0 {
                break;
            }
            start = cursor.skip_to_frame(&placed)?;
        }
        placed.bytes = pieces.iter().map(|piece| size(piece.len())).sum();
        placed.pieces = pieces.to_vec();
        Some(placed)
    }

    /// Frames of any writers that are copied from another node: as many of the first ones as lie
    /// together, and the rest. Bytes of the extent that have no frame are dead. `None` if a
    /// checksum does not match, or the first frame lies before the end of the extent.
    pub(crate) fn copied(frames: &[RawFrame], expected: Expected) -> Option<(Self, &[RawFrame])> {
        let mut placed = Self::nothing(expected.end);
        placed.start = frames.first().map(|first| first.offset).filter(|at| *at <= OFFSET_MAX)?;
        let mut rest = frames;
        while let Some((frame, others)) = rest.split_first() {
            let written = placed.start + placed.bytes;
            if frame.offset < placed.end || frame.offset > written + PAGE && placed.frames > 0 {
                break;
            }
            let mut cursor = Cursor::new(std::slice::from_ref(&frame.bytes));
            let head = cursor.frame(expected.extent, frame.offset)?;
            if cursor.left > 0 {
                return None;
            }
            placed.fill_to(frame.offset);
            placed.add(frame.offset, head);
            placed.push(frame.bytes.clone());
            rest = others;
        }
        (placed.frames > 0).then_some((placed, rest))
    }

    fn nothing(end: ExtentOffset) -> Self {
        Self {
            start: end,
            pieces: Vec::new(),
            bytes: 0,
            end,
            padding: Vec::new(),
            locations: Vec::new(),
            frames: 0,
            payload_bytes: 0,
        }
    }

    fn add(&mut self, start: ExtentOffset, frame: CheckedFrame) {
        if start > self.end {
            self.padding.push(self.end..start);
        }
        self.end = frame_end(start, frame.len);
        self.frames += 1;
        self.payload_bytes += frame.len;
    }
}

/// A frame all of whose checksums match.
#[derive(Clone, Copy, Debug)]
struct CheckedFrame {
    /// Payload bytes.
    len: u64,
    epoch: Epoch,
}

/// Reads pieces as if they were contiguous. Payload is not copied.
struct Cursor {
    pieces: VecDeque<Bytes>,
    /// Bytes that were not taken yet.
    left: u64,
    /// Bytes that were taken.
    taken: u64,
}

impl Cursor {
    fn new(pieces: &[Bytes]) -> Self {
        let left = pieces.iter().map(|piece| size(piece.len())).sum();
        Self { pieces: pieces.iter().cloned().collect(), left, taken: 0 }
    }

    /// Takes the frame that starts here, at `offset` of the extent.
    fn frame(&mut self, extent: ExtentId, offset: ExtentOffset) -> Option<CheckedFrame> {
        let len = Head::claimed_len(&self.peek(HEADER)?)?;
        let head = Head::parse(&self.peek(head_len(len))?, extent, offset)?;
        self.take(head.head_len())?;
        let sums = chunk_sums(&self.take(head.len)?);
        let whole = super::combine_chunks(&sums, head.len);
        let matches = sums == head.table && whole == head.crc;
        matches.then_some(CheckedFrame { len: head.len, epoch: head.epoch })
    }

    /// Skips the padding after the frames so far. Returns where the next frame starts.
    fn skip_to_frame(&mut self, placed: &Placed) -> Option<ExtentOffset> {
        self.skip_zeros(placed.end - (placed.start + self.taken))?;
        if starts_frame(&self.peek(HEADER)?) {
            return Some(placed.end);
        }
        let aligned = offset_up(placed.end);
        self.skip_zeros(aligned - placed.end)?;
        Some(aligned)
    }

    fn skip_zeros(&mut self, len: u64) -> Option<()> {
        let zeros = self.take(len)?;
        zeros.iter().all(|piece| piece.iter().all(|byte| *byte == 0)).then_some(())
    }

    /// The next bytes, which are copied if they lie in several pieces.
    fn peek(&self, len: u64) -> Option<Bytes> {
        let want = index(len);
        let first = self.pieces.front()?;
        if first.len() >= want {
            return Some(first.slice(..want));
        }
        let mut joined = BytesMut::with_capacity(want.min(index(self.left)));
        for piece in &self.pieces {
            let part = piece.len().min(want - joined.len());
            joined.extend_from_slice(piece.get(..part)?);
            if joined.len() == want {
                break;
            }
        }
        (joined.len() == want).then(|| joined.freeze())
    }

    fn take(&mut self, len: u64) -> Option<Vec<Bytes>> {
        self.left = self.left.checked_sub(len)?;
        self.taken += len;
        let mut want = index(len);
        let mut taken = Vec::new();
        while want > 0 {
            let first = self.pieces.front_mut()?;
            taken.push(first.split_to(want.min(first.len())));
            want -= taken.last()?.len();
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Prepared;
    use super::super::place;
    use super::*;

    const ID: ExtentId = ExtentId::new(7);
    const ONE: Epoch = Epoch::new(1);

    fn placed(end: u64, lens: &[usize]) -> Placed {
        let payloads = lens.iter().map(|&len| Prepared::new(vec![Bytes::from(vec![9; len])]));
        place(payloads.collect(), ID, ONE, ExtentOffset::new(end))
    }

    fn expected(end: u64) -> Expected {
        Expected { extent: ID, end: ExtentOffset::new(end) }
    }

    fn assert_same(got: &Placed, sent: &Placed) {
        assert_eq!((got.start, got.end, got.bytes), (sent.start, sent.end, sent.bytes));
        assert_eq!((&got.padding, got.frames), (&sent.padding, sent.frames));
        assert_eq!(got.payload_bytes, sent.payload_bytes);
        assert_eq!(got.pieces.concat(), sent.pieces.concat());
    }

    /// The same bytes in pieces of this length.
    fn cut(pieces: &[Bytes], len: usize) -> Vec<Bytes> {
        let whole = Bytes::from(pieces.concat());
        (0..whole.len()).step_by(len).map(|at| whole.slice(at..whole.len().min(at + len))).collect()
    }

    proptest! {
        #[test]
        fn frames_are_received_as_they_were_placed(
            end in 0u64..20_000,
            lens in prop::collection::vec(prop_oneof![1usize..100, 1usize..70_000, Just(1_100_000)], 1..5),
            piece in 1usize..5_000,
        ) {
            let sent = placed(end, &lens);
            let got = Placed::received(&sent.pieces, expected(end), ONE).unwrap();
            assert_same(&got, &sent);
            let got = Placed::received(&cut(&sent.pieces, piece), expected(end), ONE).unwrap();
            assert_same(&got, &sent);
        }
    }

    #[test]
    fn each_changed_byte_is_found() {
        let sent = placed(5, &[10, 40_000, 20]);
        let whole = sent.pieces.concat();
        for at in (0..100).chain(4_000..4_200).chain([30_000, whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let got = Placed::received(&[Bytes::from(changed)], expected(5), ONE);
            assert!(got.is_none(), "byte {at}");
        }
        let cut = Bytes::from(whole[..whole.len() - 1].to_vec());
        assert!(Placed::received(&[cut], expected(5), ONE).is_none());
        assert!(Placed::received(&[], expected(5), ONE).is_none());
    }

    #[test]
    fn offsets_near_the_greatest_number_are_refused() {
        let sent = placed(0, &[40_000]);
        assert!(Placed::received(&sent.pieces, expected(u64::MAX), ONE).is_none());
        let bytes = Bytes::from(sent.pieces.concat());
        let far = RawFrame { offset: ExtentOffset::new(u64::MAX - 1), bytes };
        assert!(Placed::copied(&[far], expected(0)).is_none());
    }

    #[test]
    fn frames_of_another_place_extent_or_epoch_are_refused() {
        let sent = placed(0, &[10, 20]);
        assert!(Placed::received(&sent.pieces, expected(8), ONE).is_none());
        assert!(Placed::received(&sent.pieces, expected(0), Epoch::new(2)).is_none());
        let other = Expected { extent: ExtentId::new(8), ..expected(0) };
        assert!(Placed::received(&sent.pieces, other, ONE).is_none());
    }

    #[test]
    fn frame_behind_a_gap_is_copied_and_the_gap_is_dead() {
        let sent = placed(5, &[40_000]);
        let frame = RawFrame { offset: sent.start, bytes: Bytes::from(sent.pieces.concat()) };
        let frames = [frame.clone()];
        let (got, rest) = Placed::copied(&frames, expected(0)).unwrap();
        assert_eq!((got.padding, rest.len()), (vec![ExtentOffset::START..sent.start], 0));
        assert_eq!((got.start, got.end), (sent.start, sent.end));
        assert!(Placed::copied(&frames, expected(sent.start.get() + 1)).is_none());
        let long = RawFrame { bytes: Bytes::from([&frame.bytes[..], b"x"].concat()), ..frame };
        assert!(Placed::copied(&[long], expected(0)).is_none());
    }

    #[test]
    fn frames_that_lie_together_are_copied_together() {
        let (near, far) = (placed(0, &[100]), placed(40_000, &[100]));
        let next = place(
            vec![Prepared::new(vec![Bytes::from_static(b"next")])],
            ID,
            Epoch::new(2),
            near.end,
        );
        let raw = |placed: &Placed| RawFrame {
            offset: placed.start,
            bytes: Bytes::from(placed.pieces.concat()),
        };
        let frames = [raw(&near), raw(&next), raw(&far)];
        let (got, rest) = Placed::copied(&frames, expected(0)).unwrap();
        assert_eq!((got.frames, got.end, rest.len()), (2, next.end, 1));
        assert_eq!(got.pieces.concat(), [near.pieces.concat(), next.pieces.concat()].concat());
        let (got, rest) = Placed::copied(rest, Expected { end: next.end, ..expected(0) }).unwrap();
        assert_eq!((got.start, got.padding, rest.len()), (far.start, vec![next.end..far.start], 0));
    }
}
