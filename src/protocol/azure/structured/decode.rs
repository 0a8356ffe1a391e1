//! Takes a structured message apart as it arrives; keeps at most one header of it.

use bytes::Buf;
use bytes::Bytes;

use super::CHECKSUM_LEN;
use super::FLAG_CRC64;
use super::HEADER_LEN;
use super::SEGMENT_HEADER_LEN;
use super::VERSION;
use super::broken;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::Crc64Hasher;

/// The part of the message to which the next bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    SegmentHeader,
    Content { left: u64 },
    SegmentTrailer,
    Trailer,
    End,
}

/// Decodes one message. Content is given out as it arrives, before its checksum is known: the
/// caller makes nothing visible until [`Decoder::finish`].
#[derive(Debug)]
pub struct Decoder {
    /// Length of the message, as `Content-Length` says.
    message_len: u64,
    /// Content not seen yet.
    content_left: u64,
    part: Part,
    /// The bytes of a header or trailer that are here.
    held: Vec<u8>,
    checksums: bool,
    segments: u16,
    /// The number of the segment we are in, from 1.
    segment: u16,
    segment_len: u64,
    segment_crc64: Crc64Hasher,
    crc64: Crc64,
    combiner: Crc64Combiner,
}

impl Decoder {
    /// A decoder of a message of `message_len` bytes with `content_len` bytes of content.
    #[must_use]
    pub fn new(message_len: u64, content_len: u64) -> Self {
        Self {
            message_len,
            content_left: content_len,
            part: Part::Header,
            held: Vec::new(),
            checksums: false,
            segments: 0,
            segment: 0,
            segment_len: 0,
            segment_crc64: Crc64Hasher::default(),
            crc64: Crc64::EMPTY,
            combiner: Crc64Combiner::default(),
        }
    }

    /// Takes the next bytes of the message and gives the content among them; call until `bytes` is
    /// empty.
    ///
    /// # Errors
    /// `InvalidInput` when the message is not well formed, `Crc64Mismatch` when the content was
    /// changed.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        while !bytes.is_empty() {
            if let Part::Content { left } = self.part {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let piece = bytes.split_to(len);
                if self.checksums {
                    self.segment_crc64.update(&piece);
                }
                self.part = Part::Content { left: left - piece.len() as u64 };
                self.after_content();
                return Ok(Some(piece));
            }
            let missing = self.part_len() - self.held.len();
            if missing == 0 {
                return Err(broken("bytes follow its end"));
            }
            let piece = bytes.split_to(missing.min(bytes.len()));
            self.held.extend_from_slice(&piece);
            if piece.len() == missing {
                let held = std::mem::take(&mut self.held);
                self.fixed_part(&held)?;
            }
        }
        Ok(None)
    }

    /// Ends the message.
    ///
    /// # Errors
    /// `InvalidInput` when it ended early.
    pub fn finish(&self) -> Result<(), Refusal> {
        if self.part == Part::End { Ok(()) } else { Err(broken("it ends early")) }
    }

    /// Bytes of the header or trailer we are in.
    fn part_len(&self) -> usize {
        let len = match self.part {
            Part::Header => HEADER_LEN,
            Part::SegmentHeader => SEGMENT_HEADER_LEN,
            Part::SegmentTrailer | Part::Trailer => CHECKSUM_LEN,
            Part::Content { .. } | Part::End => 0,
        };
        usize::try_from(len).unwrap_or(usize::MAX)
    }

    fn fixed_part(&mut self, held: &[u8]) -> Result<(), Refusal> {
        match self.part {
            Part::Header => self.header(held),
            Part::SegmentHeader => self.segment_header(held),
            Part::SegmentTrailer => self.segment_trailer(held),
            Part::Trailer => {
                self.part = Part::End;
                compare(held, self.crc64)
            }
            Part::Content { .. } | Part::End => Ok(()),
        }
    }

    fn header(&mut self, mut held: &[u8]) -> Result<(), Refusal> {
        let (version, len) = (held.get_u8(), held.get_u64_le());
        let (flags, segments) = (held.get_u16_le(), held.get_u16_le());
        if version != VERSION {
            return Err(broken("its version is not 1"));
        }
        if len != self.message_len {
            return Err(broken("its length is not Content-Length"));
        }
        // The header of the request asks for checksums.
        if flags != FLAG_CRC64 {
            return Err(broken("its flags are not those of crc64"));
        }
        if segments == 0 {
            return Err(broken("it has no segments"));
        }
        self.checksums = true;
        self.segments = segments;
        self.part = Part::SegmentHeader;
        Ok(())
    }

    fn segment_header(&mut self, mut held: &[u8]) -> Result<(), Refusal> {
        let (number, len) = (held.get_u16_le(), held.get_u64_le());
        self.segment += 1;
        if number != self.segment {
            return Err(broken("its segments are not numbered in order"));
        }
        self.content_left = self
            .content_left
            .checked_sub(len)
            .ok_or_else(|| broken("its segments are longer than x-ms-structured-content-length"))?;
        self.segment_len = len;
        self.part = Part::Content { left: len };
        self.after_content();
        Ok(())
    }

    /// Moves on when the segment's content is complete; that of an empty segment is complete
    /// immediately.
    fn after_content(&mut self) {
        if self.part == (Part::Content { left: 0 }) {
            self.part = Part::SegmentTrailer;
        }
    }

    fn segment_trailer(&mut self, held: &[u8]) -> Result<(), Refusal> {
        let crc64 = std::mem::take(&mut self.segment_crc64).finish();
        compare(held, crc64)?;
        self.crc64 = self.combiner.combine(self.crc64, crc64, self.segment_len);
        if self.segment < self.segments {
            self.part = Part::SegmentHeader;
            return Ok(());
        }
        if self.content_left > 0 {
            return Err(broken("its segments are shorter than x-ms-structured-content-length"));
        }
        self.part = Part::Trailer;
        Ok(())
    }
}

fn compare(held: &[u8], computed: Crc64) -> Result<(), Refusal> {
    let claimed = Crc64::from_le_bytes(held.try_into().unwrap_or_default());
    if claimed == computed {
        return Ok(());
    }
    Err(Refusal::new(Reason::Crc64Mismatch)
        .detail(Detail::ClaimedCrc64, claimed.to_base64())
        .detail(Detail::ComputedCrc64, computed.to_base64()))
}
