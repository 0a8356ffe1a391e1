//! The purse, with which one answer takes memory, and the count of what it holds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::protocol::Error;

use super::budget::Budget;
use super::budget::PATIENCE;
use super::payer::Payer;
use super::reservation::Reservation;

/// The bytes that one answer holds of the memory for answers, in whichever buffer they are.
#[derive(Debug)]
pub(crate) struct Holding {
    payer: Payer,
    bytes: AtomicU64,
    /// How long the answer has waited for bytes before its head was sent, in microseconds.
    waited: AtomicU64,
}

impl Holding {
    /// The payer of the answer.
    pub(super) const fn payer(&self) -> Payer {
        self.payer
    }

    /// Bytes held.
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

/// Takes memory for one answer. Clones belong to the same answer.
#[derive(Clone, Debug)]
pub(crate) struct Purse {
    budget: Arc<Budget>,
    holding: Arc<Holding>,
}

impl Purse {
    /// The purse of an answer that holds nothing yet.
    pub(crate) fn new(budget: &Arc<Budget>, payer: Payer) -> Self {
        let holding =
            Arc::new(Holding { payer, bytes: AtomicU64::new(0), waited: AtomicU64::new(0) });
        Self { budget: Arc::clone(budget), holding }
    }

    /// What the answer holds.
    pub(crate) const fn holding(&self) -> &Arc<Holding> {
        &self.holding
    }

    /// How many bytes it should read in one step now (`Budget::step_bytes`).
    pub(crate) fn step_bytes(&self) -> u64 {
        self.budget.step_bytes(self.holding.payer)
    }

    /// Takes bytes, unless they are not free or another payer waits; then `None`.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Reservation> {
        let reservation = self.budget.try_take(self.holding.payer, bytes)?;
        Some(reservation.of(&self.holding))
    }

    /// Takes bytes and waits for them without a limit. Only for an answer that holds none:
    /// otherwise answers could wait for each other for ever. Cancel safe.
    pub(crate) async fn wait(&self, bytes: u64) -> Reservation {
        self.budget.wait(self.holding.payer, bytes).await.of(&self.holding)
    }

    /// Takes bytes for an answer whose head is not sent yet. An answer that takes bytes in steps
    /// waits no longer in all than one that takes them once. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy` when too many answers wait already, or no bytes become free in time.
    pub(crate) async fn begin(&self, bytes: u64) -> Result<Reservation, Error> {
        let waited = Duration::from_micros(self.holding.waited.load(Ordering::Relaxed));
        let (began, patience) = (self.budget.now(), PATIENCE.saturating_sub(waited));
        let begun = self.budget.begin((self.holding.payer, bytes), patience).await;
        let took = self.budget.now().saturating_sub(began).as_micros();
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        self.holding.waited.fetch_add(took, Ordering::Relaxed);
        Ok(begun?.of(&self.holding))
    }
}
