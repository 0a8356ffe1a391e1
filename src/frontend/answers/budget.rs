//! Memory for answers: bounded over all answers and shared by accounts. Anonymous callers share
//! their part by peers too.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::Clock;
use crate::frontend::admission::Shares;
use crate::frontend::admission::Taken;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Refusal;

use super::memory_use::MemoryId;
use super::memory_use::MemoryUse;
use super::payer::Payer;
use super::payer::ShareKey;
use super::queue::Demand;
use super::queue::Lines;
use super::queue::Queue;
use super::queue::Waiter;

/// Bytes that a body reads in one step while at least half of the memory is free.
const STEP_MAX_BYTES: u64 = 1 << 20;
/// Bytes of a step while less than half of the memory is free.
const STEP_MIDDLE_BYTES: u64 = 128 << 10;
/// Bytes of a step while less than a quarter is free, so that a few bodies do not take the rest.
pub(crate) const STEP_MIN_BYTES: u64 = 16 << 10;
/// How long an answer may wait before its head is sent, all its waits together.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Answers that may wait before their head is sent, in each of the two queues.
const WAITING_MAX: usize = 4096;
/// How many payers that have their share are passed over in one search for one below its share.
const PASSED_OVER_MAX: usize = 32;

/// The bytes that all answers hold together.
#[derive(Debug)]
pub(crate) struct AnswerBudget {
    max: u64,
    clock: Arc<dyn Clock>,
    taken: AtomicU64,
    /// The part of `taken` that anonymous callers hold.
    open: AtomicU64,
    /// Shares by account.
    accounts: Shares<ShareKey>,
    /// Shares of anonymous callers, by peer. Together they get three quarters of the memory; the
    /// rest is for authenticated callers.
    peers: Shares<IpAddr>,
    /// Authenticated callers that wait.
    known_queue: Queue<Reservation>,
    /// Anonymous callers that wait, for their part of the memory.
    open_queue: Queue<Reservation>,
}

/// Payers that have more than their share.
#[derive(Debug)]
pub(super) struct AboveShare {
    accounts: HashSet<ShareKey>,
    peers: HashSet<IpAddr>,
}

impl AboveShare {
    /// Whether a payer has more than its share.
    pub(super) fn contains(&self, payer: &Payer) -> bool {
        self.accounts.contains(&payer.share())
            || !payer.known && self.peers.contains(&payer.network())
    }
}

impl AnswerBudget {
    /// A budget of `max` bytes.
    pub(crate) fn new(max: u64, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            max,
            clock,
            taken: AtomicU64::new(0),
            open: AtomicU64::new(0),
            accounts: Shares::new(max),
            peers: Shares::new(max - max / 4),
            known_queue: Queue::default(),
            open_queue: Queue::default(),
        })
    }

    /// Identifies this memory.
    pub(super) fn id(self: &Arc<Self>) -> MemoryId {
        MemoryId(Arc::as_ptr(self).addr())
    }

    /// How many bytes a body should read in one step now: fewer when less memory is free. The sizes
    /// are powers of two, so that steps end where frames do.
    pub(crate) fn step_bytes(&self, payer: Payer) -> u64 {
        let max = self.max_of(payer);
        match self.free(payer.known) {
            free if free >= max / 2 => STEP_MAX_BYTES,
            free if free >= max / 4 => STEP_MIDDLE_BYTES,
            _ => STEP_MIN_BYTES,
        }
    }

    /// Takes bytes, unless they are not free or another payer waits; then `None`.
    pub(crate) fn try_take(self: &Arc<Self>, payer: Payer, bytes: u64) -> Option<Reservation> {
        if !self.queue_of(payer).is_empty() {
            return None;
        }
        let demand = self.capped(payer, bytes);
        (self.take(demand) == Taken::Yes).then(|| self.reserved(demand))
    }

    /// Takes bytes and waits for them without a limit. Only for a body that holds none: otherwise
    /// bodies could wait for each other forever. Cancel safe.
    pub(crate) async fn wait(self: &Arc<Self>, payer: Payer, bytes: u64) -> Reservation {
        loop {
            if let Some(reservation) = self.try_take(payer, bytes) {
                return reservation;
            }
            let promised = self.queue(payer, bytes, usize::MAX);
            // Bytes may have been given back before the demand was in the queue.
            self.serve();
            if let Some(promised) = promised
                && let Ok(reservation) = promised.await
            {
                return reservation;
            }
        }
    }

    /// Takes bytes for an answer whose head is not sent yet. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy` when `WAITING_MAX` callers wait already, or after `patience`.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        payer: Payer,
        bytes: u64,
        patience: Duration,
    ) -> Result<Reservation, Refusal> {
        if let Some(reservation) = self.try_take(payer, bytes) {
            return Ok(reservation);
        }
        let Some(promised) = self.queue(payer, bytes, WAITING_MAX) else {
            return Err(errors::busy(Busy::AnswerMemory));
        };
        self.serve();
        tokio::select! {
            biased;
            promised = promised => promised.map_err(|_| errors::busy(Busy::AnswerMemory)),
            () = self.clock.sleep(patience) => Err(errors::busy(Busy::AnswerMemory)),
        }
    }

    /// Whether a caller waits for bytes: an authenticated one if `known`, else an anonymous one.
    pub(crate) fn is_short(self: &Arc<Self>, known: bool) -> bool {
        let queue = if known { &self.known_queue } else { &self.open_queue };
        // Drops demands whose callers gave up, so that they do not count.
        self.serve_queue(queue);
        !queue.is_empty()
    }

    /// The payers that have more than their share.
    pub(super) fn above_share(&self, now: Duration) -> AboveShare {
        AboveShare { accounts: self.accounts.above_share(now), peers: self.peers.above_share(now) }
    }

    /// The time by the monotonic clock.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Bytes that answers hold.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Bytes that are free for authenticated callers if `known`, else for anonymous ones.
    fn free(&self, known: bool) -> u64 {
        let free = self.max.saturating_sub(self.taken());
        if known {
            return free;
        }
        let open_max = self.max - self.max / 4;
        free.min(open_max.saturating_sub(self.open.load(Ordering::SeqCst)))
    }

    const fn queue_of(&self, payer: Payer) -> &Queue<Reservation> {
        if payer.known { &self.known_queue } else { &self.open_queue }
    }

    /// The most that one answer may ask for.
    const fn max_of(&self, payer: Payer) -> u64 {
        if payer.known { self.max } else { self.max - self.max / 4 }
    }

    /// A demand for at most as many bytes as one answer may ask for.
    fn capped(&self, payer: Payer, bytes: u64) -> Demand {
        Demand { payer, bytes: bytes.min(self.max_of(payer)) }
    }

    fn reserved(self: &Arc<Self>, Demand { payer, bytes }: Demand) -> Reservation {
        Reservation::new(Arc::clone(self), payer, bytes)
    }

    fn take(&self, Demand { payer, bytes }: Demand) -> Taken {
        let now = self.clock.monotonic();
        let taken = self.accounts.take(payer.share(), bytes, now);
        if taken != Taken::Yes {
            return taken;
        }
        if !payer.known {
            let taken = self.peers.take(payer.network(), bytes, now);
            if taken != Taken::Yes {
                self.accounts.give(payer.share(), bytes);
                return taken;
            }
        }
        self.taken.fetch_add(bytes, Ordering::SeqCst);
        if !payer.known {
            self.open.fetch_add(bytes, Ordering::SeqCst);
        }
        Taken::Yes
    }

    fn give(&self, payer: Payer, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::SeqCst);
        self.accounts.give(payer.share(), bytes);
        if !payer.known {
            self.open.fetch_sub(bytes, Ordering::SeqCst);
            self.peers.give(payer.network(), bytes);
        }
    }

    fn queue(
        &self,
        payer: Payer,
        bytes: u64,
        most: usize,
    ) -> Option<oneshot::Receiver<Reservation>> {
        let demand = self.capped(payer, bytes);
        // Other payers must leave it its share from now on. Its demand may be served much later.
        let now = self.clock.monotonic();
        self.accounts.came(payer.share(), now);
        if !payer.known {
            self.peers.came(payer.network(), now);
        }
        self.queue_of(payer).push(demand, most)
    }

    /// Gives free bytes to waiting payers in turn. Payers that have their share are passed over.
    fn serve(self: &Arc<Self>) {
        self.serve_queue(&self.known_queue);
        self.serve_queue(&self.open_queue);
    }

    fn serve_queue(self: &Arc<Self>, queue: &Queue<Reservation>) {
        if !queue.is_empty() {
            queue.with(|lines| self.serve_lines(lines));
        }
    }

    fn serve_lines(self: &Arc<Self>, lines: &mut Lines<Reservation>) {
        let mut passed_over = 0;
        // Nothing is given back during this call, so a second round would find nothing new.
        while passed_over < PASSED_OVER_MAX.min(lines.payers())
            && let Some(demand) = lines.first()
        {
            match self.take(demand) {
                Taken::Soon | Taken::Alone => break,
                Taken::No => {
                    passed_over += 1;
                    lines.pass_over();
                }
                Taken::Yes => {
                    if let Some(Waiter { promise, .. }) = lines.pop()
                        && let Err(unwanted) = promise.send(self.reserved(demand))
                    {
                        // Its `Drop` would call `serve` again from within.
                        unwanted.give_back();
                    }
                }
            }
        }
    }
}

/// Bytes taken from the budget; they are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// `None` once the bytes were given back.
    budget: Option<Arc<AnswerBudget>>,
    payer: Payer,
    bytes: u64,
    /// The count of the answer that holds the bytes.
    holding: Option<Arc<MemoryUse>>,
}

impl Reservation {
    /// Bytes that `budget` has counted for `payer`.
    const fn new(budget: Arc<AnswerBudget>, payer: Payer, bytes: u64) -> Self {
        Self { budget: Some(budget), payer, bytes, holding: None }
    }

    /// The same bytes, added to what an answer holds.
    pub(super) fn of(mut self, holding: &Arc<MemoryUse>) -> Self {
        holding.grow(self.bytes);
        self.holding = Some(Arc::clone(holding));
        self
    }

    /// The count of the answer that holds the bytes.
    pub(crate) const fn holding(&self) -> Option<&Arc<MemoryUse>> {
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

    /// Splits off a part of at most `bytes`.
    pub(super) fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let (budget, holding) = (self.budget.clone(), self.holding.clone());
        Self { budget, payer: self.payer, bytes, holding }
    }

    /// Gives the bytes back without serving the queue. For the code that serves it already.
    fn give_back(mut self) {
        drop(self.take_back());
    }

    fn take_back(&mut self) -> Option<Arc<AnswerBudget>> {
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

#[cfg(test)]
mod tests;
