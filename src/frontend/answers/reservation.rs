//! Bytes that an answer has taken.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::budget::Budget;
use super::payer::Payer;

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// None once they were given back.
    budget: Option<Arc<Budget>>,
    payer: Payer,
    bytes: u64,
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
        Self { budget: Some(budget), payer, bytes }
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let Some(budget) = self.budget.as_ref().filter(|_| bytes < self.bytes) else { return };
        budget.give(self.payer, self.bytes - bytes);
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

    /// Gives the bytes back without serving who waits: for who is just doing that.
    pub(super) fn give_back(mut self) {
        if let Some(budget) = self.budget.take() {
            budget.give(self.payer, self.bytes);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.take() {
            budget.give(self.payer, self.bytes);
            budget.serve();
        }
    }
}
