//! Writes a structured message around content as it is read.

use std::collections::VecDeque;

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use super::CHECKSUM_LEN;
use super::FLAG_CRC64;
use super::HEADER_LEN;
use super::SEGMENT_HEADER_LEN;
use super::VERSION;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::Crc64Hasher;

/// Content bytes of a segment, while 65,535 of them are enough.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Encodes one message of content whose length is known.
#[derive(Debug)]
pub struct Encoder {
    content_len: u64,
    pub(super) segment_bytes: u64,
    pub(super) segments: u16,
    /// Content taken so far.
    taken: u64,
    /// Segments begun so far.
    begun: u16,
    /// Content missing in the segment we are in.
    left: u64,
    segment_crc64: Crc64Hasher,
    crc64: Crc64,
    combiner: Crc64Combiner,
}

impl Encoder {
    /// An encoder of `content_len` bytes.
    #[must_use]
    pub fn new(content_len: u64) -> Self {
        let segment_bytes = SEGMENT_BYTES.max(content_len.div_ceil(u64::from(u16::MAX)));
        let segments = content_len.div_ceil(segment_bytes).max(1);
        Self {
            content_len,
            segment_bytes,
            segments: u16::try_from(segments).unwrap_or(u16::MAX),
            taken: 0,
            begun: 0,
            left: 0,
            segment_crc64: Crc64Hasher::default(),
            crc64: Crc64::EMPTY,
            combiner: Crc64Combiner::default(),
        }
    }

    /// Bytes of the whole message.
    #[must_use]
    pub fn message_len(&self) -> u64 {
        let each = SEGMENT_HEADER_LEN + CHECKSUM_LEN;
        HEADER_LEN + u64::from(self.segments) * each + self.content_len + CHECKSUM_LEN
    }

    /// Writes the header, before any content.
    pub fn start(&mut self, out: &mut VecDeque<Bytes>) {
        let mut head = BytesMut::new();
        head.put_u8(VERSION);
        head.put_u64_le(self.message_len());
        head.put_u16_le(FLAG_CRC64);
        head.put_u16_le(self.segments);
        out.push_back(head.freeze());
        self.begin_segment(out);
        if self.content_len == 0 {
            self.end_segment(out);
        }
    }

    /// The next content, framed.
    pub fn push(&mut self, mut content: Bytes, out: &mut VecDeque<Bytes>) {
        while !content.is_empty() {
            let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(content.len());
            let piece = content.split_to(len.max(1));
            self.segment_crc64.update(&piece);
            self.left = self.left.saturating_sub(piece.len() as u64);
            self.taken += piece.len() as u64;
            out.push_back(piece);
            if self.left == 0 {
                self.end_segment(out);
            }
        }
    }

    fn begin_segment(&mut self, out: &mut VecDeque<Bytes>) {
        self.begun += 1;
        self.left = self.segment_bytes.min(self.content_len - self.taken);
        let mut head = BytesMut::new();
        head.put_u16_le(self.begun);
        head.put_u64_le(self.left);
        out.push_back(head.freeze());
    }

    fn end_segment(&mut self, out: &mut VecDeque<Bytes>) {
        let len = self.taken - u64::from(self.begun - 1) * self.segment_bytes;
        let crc64 = std::mem::take(&mut self.segment_crc64).finish();
        self.crc64 = self.combiner.combine(self.crc64, crc64, len);
        out.push_back(Bytes::copy_from_slice(&crc64.to_le_bytes()));
        if self.begun < self.segments {
            self.begin_segment(out);
        } else {
            out.push_back(Bytes::copy_from_slice(&self.crc64.to_le_bytes()));
        }
    }
}
