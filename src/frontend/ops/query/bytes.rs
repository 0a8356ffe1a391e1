//! Reads ranges of a blob in any order. A range that begins where the last one ended needs no
//! further look-up.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use bytes::BytesMut;

use crate::frontend::read::BlobSource;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// The content of a blob that is queried.
pub(super) struct Content {
    source: BlobSource,
    /// The offset of the first byte of `ahead`.
    at: u64,
    /// Bytes that were read and not yet asked for.
    ahead: VecDeque<Bytes>,
    /// The length of the blob.
    len: u64,
}

impl Content {
    /// The content that `source` reads from its beginning, `len` bytes.
    pub(super) const fn new(source: BlobSource, len: u64) -> Self {
        Self { source, at: 0, ahead: VecDeque::new(), len }
    }

    /// The bytes of a range, which must lie within the blob.
    ///
    /// # Errors
    /// Those of a read; `BlobNotFound` once the blob has other content.
    pub(super) async fn read(&mut self, range: Range<u64>) -> Result<Bytes, Refusal> {
        if range.end > self.len || range.start > range.end {
            return Err(Reason::InternalError.into());
        }
        if range.start != self.at {
            self.ahead.clear();
            self.source.seek(range.start..self.len);
            self.at = range.start;
        }
        let mut wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut all = BytesMut::new();
        while wanted > 0 {
            let Some(mut piece) = self.ahead.pop_front() else {
                // `None`: the layout is shorter than the blob.
                self.ahead = self.source.next_pieces().await?.ok_or(Reason::InternalError)?;
                continue;
            };
            if piece.len() > wanted {
                self.ahead.push_front(piece.split_off(wanted));
            }
            self.at += piece.len() as u64;
            wanted -= piece.len();
            if wanted == 0 && all.is_empty() {
                return Ok(piece);
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}
