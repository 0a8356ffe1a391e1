//! Bytes of answers that are counted until the connection has taken them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::budget::Reservation;

/// A rendered body is given back in pieces of this size, as the connection takes them.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes that are counted until the last part of them is dropped.
struct Counted {
    bytes: Bytes,
    _reservation: Arc<Reservation>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reservation {
    /// The same bytes, counted until the connection has taken the last of them.
    pub(crate) fn count(self, pieces: Vec<Bytes>) -> VecDeque<Bytes> {
        let reservation = Arc::new(self);
        let count =
            |bytes| Bytes::from_owner(Counted { bytes, _reservation: Arc::clone(&reservation) });
        pieces.into_iter().map(count).collect()
    }

    /// Cuts a rendered body into pieces. Each piece is freed and given back as soon as the
    /// connection has taken it. Reserved bytes beyond the body's length are given back now.
    pub(crate) fn pieces(mut self, rendered: Bytes) -> VecDeque<Bytes> {
        let copies: Vec<Bytes> = match rendered.len() {
            // One piece needs no copy.
            0..=PIECE_BYTES => vec![rendered],
            _ => rendered.chunks(PIECE_BYTES).map(Bytes::copy_from_slice).collect(),
        };
        let count = |piece: Bytes| {
            let mut part = self.split(piece.len() as u64).count(vec![piece]);
            part.pop_front()
        };
        copies.into_iter().filter_map(count).collect()
    }
}
