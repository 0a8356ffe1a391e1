//! The handle with which one answer takes memory.

use std::sync::Arc;

use crate::protocol::model::Refusal;

use super::budget::AnswerBudget;
use super::budget::PATIENCE;
use super::budget::Reservation;
use super::memory_use::MemoryUse;
use super::payer::Payer;

/// Takes memory for one answer. Clones belong to the same answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    budget: Arc<AnswerBudget>,
    holding: Arc<MemoryUse>,
}

impl AnswerMemory {
    /// The memory of an answer that holds nothing yet.
    pub(crate) fn new(budget: &Arc<AnswerBudget>, payer: Payer) -> Self {
        Self { budget: Arc::clone(budget), holding: Arc::new(MemoryUse::new(payer, budget.id())) }
    }

    /// The memory that the answer holds.
    pub(crate) const fn holding(&self) -> &Arc<MemoryUse> {
        &self.holding
    }

    /// How many bytes it should read in one step now (`AnswerBudget::step_bytes`).
    pub(crate) fn step_bytes(&self) -> u64 {
        self.budget.step_bytes(self.holding.payer())
    }

    /// Takes bytes, unless they are not free or another payer waits; then `None`.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Reservation> {
        let reservation = self.budget.try_take(self.holding.payer(), bytes)?;
        Some(reservation.of(&self.holding))
    }

    /// Takes bytes and waits for them without a limit. Only for an answer that holds none:
    /// otherwise answers could wait for each other forever. Cancel safe.
    pub(crate) async fn wait(&self, bytes: u64) -> Reservation {
        self.budget.wait(self.holding.payer(), bytes).await.of(&self.holding)
    }

    /// Takes bytes for an answer whose head is not sent yet. The total wait of an answer that takes
    /// bytes in steps is limited like that of one that takes them once. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy` when too many answers wait already, or no bytes become free in time.
    pub(crate) async fn begin(&self, bytes: u64) -> Result<Reservation, Refusal> {
        let patience = PATIENCE.saturating_sub(self.holding.waited());
        let began = self.budget.now();
        let begun = self.budget.begin(self.holding.payer(), bytes, patience).await;
        self.holding.wait_more(self.budget.now().saturating_sub(began));
        Ok(begun?.of(&self.holding))
    }
}
