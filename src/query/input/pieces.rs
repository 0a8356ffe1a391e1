//! Ranges of the blob that are read as a whole, piece by piece.

use std::ops::Range;

use bytes::Bytes;

/// Bytes per request.
const PIECE: u64 = 4 << 20;

/// A range that is being read.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    range: Range<u64>,
    bytes: Vec<u8>,
    /// The blob ended before the range did.
    pub(crate) is_cut_off: bool,
}

impl Pieces {
    /// The bytes of the range if they are all there, else what to read next. The caller has bounded
    /// the range.
    pub(crate) fn take(&mut self, range: Range<u64>) -> Result<Bytes, Range<u64>> {
        if self.range != range {
            self.range = range;
            let length = self.range.end.saturating_sub(self.range.start);
            self.bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        }
        let start = self.range.start + self.bytes.len() as u64;
        if start < self.range.end {
            return Err(start..self.range.end.min(start + PIECE));
        }
        self.range = 0..0;
        Ok(std::mem::take(&mut self.bytes).into())
    }

    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        self.is_cut_off |= bytes.is_empty();
        let left = self.range.end - self.range.start - self.bytes.len() as u64;
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..left]);
    }
}
