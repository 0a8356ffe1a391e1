//! Reservations: bytes that an answer has taken from the budget.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::budget::Budget;
use super::payer::Payer;
use super::purse::Holding;

/// A rendered body is given back in pieces of this size, as the connection takes them.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes taken from the budget; they are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// `None` once the bytes were given back.
    budget: Option<Arc<Budget>>,
    payer: Payer,
    bytes: u64,
    /// The count of the answer that holds the bytes.
    holding: Option<Arc<Holding>>,
}

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
    /// Bytes that `budget` has counted for `payer`.
    pub(super) const fn new(budget: Arc<Budget>, payer: Payer, bytes: u64) -> Self {
        Self { budget: Some(budget), payer, bytes, holding: None }
    }

    /// The same bytes, added to what an answer holds.
    pub(super) fn of(mut self, holding: &Arc<Holding>) -> Self {
        holding.grow(self.bytes);
        self.holding = Some(Arc::clone(holding));
        self
    }

    /// The count of the answer that holds the bytes.
    pub(crate) const fn holding(&self) -> Option<&Arc<Holding>> {
        self.holding.as_ref()
    }

    /// Keeps `bytes` and gives the rest back.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let Some(budget) = self.budget.as_ref().filter(|_| bytes < self.bytes) else { return };
        budget.give(self.payer, self.bytes - bytes);
        if let Some(holding) = &self.holding {
            holding.shrink(self.bytes - bytes);
        }
        self.bytes = bytes;
        budget.serve();
    }

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

    /// Splits off a part of at most `bytes`.
    fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let (budget, holding) = (self.budget.clone(), self.holding.clone());
        Self { budget, payer: self.payer, bytes, holding }
    }

    /// Gives the bytes back without serving the queue. For the code that serves it already.
    pub(super) fn give_back(mut self) {
        drop(self.take_back());
    }

    fn take_back(&mut self) -> Option<Arc<Budget>> {
        let budget = self.budget.take()?;
        budget.give(self.payer, self.bytes);
        if let Some(holding) = &self.holding {
            holding.shrink(self.bytes);
        }
        Some(budget)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = self.take_back() {
            budget.serve();
        }
    }
}
