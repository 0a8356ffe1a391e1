//! What one answer takes memory with, and what it holds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::protocol::Error;

use super::budget::Budget;
use super::payer::Payer;
use super::reservation::Reservation;

/// What one answer holds of the memory for answers, wherever its bytes are.
#[derive(Debug)]
pub(crate) struct Holding {
    payer: Payer,
    bytes: AtomicU64,
}

impl Holding {
    /// For whom.
    pub(super) const fn payer(&self) -> Payer {
        self.payer
    }

    /// How many bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn grow(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn shrink(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Takes memory for one answer. Clones are of the same answer.
#[derive(Clone, Debug)]
pub(crate) struct Purse {
    budget: Arc<Budget>,
    holding: Arc<Holding>,
}

impl Purse {
    /// For an answer that holds nothing yet.
    pub(crate) fn new(budget: &Arc<Budget>, payer: Payer) -> Self {
        let holding = Arc::new(Holding { payer, bytes: AtomicU64::new(0) });
        Self { budget: Arc::clone(budget), holding }
    }

    /// What the answer holds.
    pub(crate) const fn holding(&self) -> &Arc<Holding> {
        &self.holding
    }

    /// How much it should read at once now.
    pub(crate) fn step_bytes(&self) -> u64 {
        self.budget.step_bytes(self.holding.payer)
    }

    /// Takes bytes if nobody waits for some.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Reservation> {
        let reservation = self.budget.try_take(self.holding.payer, bytes)?;
        Some(reservation.of(&self.holding))
    }

    /// Takes bytes, waiting for them as long as it takes. Only for who holds none: else all could
    /// wait for each other. Cancel safe.
    pub(crate) async fn wait(&self, bytes: u64) -> Reservation {
        self.budget.wait(self.holding.payer, bytes).await.of(&self.holding)
    }

    /// Takes bytes for an answer whose head is not sent yet. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy` when too many wait, or nothing is given back for a while.
    pub(crate) async fn begin(&self, bytes: u64) -> Result<Reservation, Error> {
        Ok(self.budget.begin(self.holding.payer, bytes).await?.of(&self.holding))
    }
}
