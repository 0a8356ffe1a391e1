//! The tail of an open extent: the bytes that are in the journal but not yet in its file.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::capacity::extent::frame::Placed;
use crate::capacity::units::{index, size, zeros};
use crate::types::ExtentOffset;

/// Journaled appends in offset order; each holds whole frames.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    entries: VecDeque<Entry>,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    range: Range<ExtentOffset>,
    pieces: Vec<Bytes>,
}

/// Bytes to write and the logical offset that they go to.
#[derive(Debug)]
pub(crate) struct TailWrite {
    pub(crate) at: ExtentOffset,
    pub(crate) pieces: Vec<Bytes>,
}

impl Tail {
    /// Adds the frames of an append. Does not copy them.
    pub(crate) fn push(&mut self, placed: &Placed) {
        let range = placed.start..placed.start + placed.bytes;
        self.bytes += placed.bytes;
        self.entries.push_back(Entry { range, pieces: placed.pieces.clone() });
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole tail as one write, with zeros for padding between appends. `None` if it is empty.
    pub(crate) fn as_write(&self) -> Option<TailWrite> {
        let start = self.entries.front()?.range.start;
        let mut pieces = Vec::with_capacity(self.entries.len() * 3);
        let mut end = start;
        for entry in &self.entries {
            if entry.range.start > end {
                pieces.push(zeros(entry.range.start - end));
            }
            pieces.extend(entry.pieces.iter().cloned());
            end = entry.range.end;
        }
        Some(TailWrite { at: start, pieces })
    }

    /// Empties the tail after its bytes were written to the file.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Copies up to `len` bytes at `offset` from the append that has them; fewer if that append
    /// ends before.
    pub(crate) fn copy(&self, offset: ExtentOffset, len: u64) -> Option<Bytes> {
        let after = self.entries.partition_point(|entry| entry.range.start <= offset);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        if offset >= entry.range.end {
            return None;
        }
        let mut skip = index(offset - entry.range.start);
        let mut want = index(len.min(entry.range.end - offset));
        let mut copy = BytesMut::with_capacity(want);
        for piece in &entry.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let part = piece.get(skip..piece.len().min(skip + want))?;
            copy.extend_from_slice(part);
            want -= part.len();
            skip = 0;
            if want == 0 {
                break;
            }
        }
        debug_assert!(size(copy.len()) <= len, "copied more than asked");
        Some(copy.freeze())
    }
}
