//! The bytes of the blob between those that were worked on and those that were not read.

use std::ops::Range;

use bytes::Bytes;

/// Bytes per request.
const READ: u64 = 1 << 20;

/// A part of the blob in memory. The caller bounds it: it takes bytes out or stops.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// The processed prefix of `bytes`.
    done: usize,
    /// The offset of the first of `bytes` in the blob.
    offset: u64,
    length: u64,
}

impl Window {
    pub(crate) fn new(length: u64) -> Self {
        Self { bytes: Vec::new(), done: 0, offset: 0, length }
    }

    /// The bytes that were read and not processed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// Where that begins in the blob.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.done as u64
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.done = self.done.saturating_add(count).min(self.bytes.len());
    }

    fn read(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Whether nothing of the blob is left to read.
    pub(crate) fn is_end(&self) -> bool {
        self.read() >= self.length
    }

    /// The range to read next.
    pub(crate) fn wanted(&self) -> Range<u64> {
        let start = self.read();
        start..self.length.min(start.saturating_add(READ))
    }

    /// Adds the bytes that were read next. If that is nothing, the blob ends here.
    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        self.offset = self.position();
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend_from_slice(bytes);
        if bytes.is_empty() {
            self.length = self.read();
        }
    }
}
