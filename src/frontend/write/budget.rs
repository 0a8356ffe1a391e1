//! Memory for request bodies. It is bounded over all requests, taken as bytes arrive, so that a
//! slow client holds little, and shared fairly by accounts.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::env::Clock;
use crate::frontend::admission::Denied;
use crate::frontend::admission::Shares;
use crate::frontend::admission::Taken;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Refusal;
use crate::types::AccountId;

/// About the overhead of a piece: a client may send its bytes one by one.
pub(super) const PIECE_BYTES: usize = 128;

/// The memory that the bodies of all running requests may take.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<Memory>);

#[derive(Debug)]
struct Memory {
    shares: Shares,
    clock: Arc<dyn Clock>,
    denied: Denied,
}

/// The memory that one body holds.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    account: AccountId,
    bytes: AtomicU64,
}

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    memory: Arc<Memory>,
    body: Arc<BodyMemory>,
    bytes: u64,
}

impl BodyMemory {
    /// The memory of a new body of this account.
    pub(crate) fn of(account: AccountId) -> Arc<Self> {
        Arc::new(Self { account, bytes: AtomicU64::new(0) })
    }

    /// The account that is charged.
    pub(crate) const fn account(&self) -> AccountId {
        self.account
    }

    /// The account that is charged; `None` while the body holds no memory.
    pub(crate) fn holder(&self) -> Option<AccountId> {
        (self.bytes.load(Ordering::Relaxed) > 0).then_some(self.account)
    }
}

/// A body in memory, with its reservation: the body may outlive its request.
#[derive(Debug)]
pub(crate) struct InMemory {
    pub(crate) pieces: Vec<Bytes>,
    /// Shared by the parts of one body.
    pub(crate) held: Arc<[BodyReservation]>,
}

impl InMemory {
    /// A body whose memory is counted elsewhere.
    pub(crate) fn uncounted(pieces: Vec<Bytes>) -> Self {
        Self { pieces, held: Arc::default() }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl BodyBudget {
    /// A budget of `bytes`.
    pub(crate) fn new(bytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Memory { shares: Shares::new(bytes), clock, denied: Denied::default() }))
    }

    /// Takes memory for a piece of a body.
    ///
    /// # Errors
    /// `ServerBusy` when other requests hold all of it. A body that holds memory must not wait for
    /// more: two of them could wait for each other forever.
    pub(crate) fn take(
        &self,
        body: &Arc<BodyMemory>,
        bytes: usize,
    ) -> Result<BodyReservation, Refusal> {
        let bytes = bytes.saturating_add(PIECE_BYTES) as u64;
        let now = self.0.clock.monotonic();
        match self.0.shares.take(body.account, bytes, now) {
            Taken::Yes => {
                body.bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(BodyReservation { memory: Arc::clone(&self.0), body: Arc::clone(body), bytes })
            }
            Taken::Soon => {
                self.0.denied.note(now);
                Err(errors::busy(Busy::BodyMemory))
            }
            Taken::No | Taken::Alone => Err(errors::busy(Busy::BodyMemory)),
        }
    }

    /// Whether an account below its share was refused a moment ago.
    pub(crate) fn is_short(&self, now: Duration) -> bool {
        self.0.denied.is_recent(now)
    }

    /// Accounts that have more than their share.
    pub(crate) fn above_share(&self, now: Duration) -> HashSet<AccountId> {
        self.0.shares.above_share(now)
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.body.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.shares.give(self.body.account, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::OsClock;

    #[test]
    fn bytes_that_come_one_by_one_cost_what_they_take() {
        let budget = BodyBudget::new(64 << 10, Arc::new(OsClock::new()));
        let body = BodyMemory::of(AccountId::new(1));
        let held: Vec<BodyReservation> = (0..).map_while(|_| budget.take(&body, 1).ok()).collect();
        assert_eq!(held.len(), (64 << 10) / (PIECE_BYTES + 1));
        assert_eq!(body.holder(), Some(AccountId::new(1)));
        drop(held);
        assert_eq!(body.holder(), None);
        assert!(budget.take(&body, (64 << 10) - PIECE_BYTES).is_ok(), "all is given back");
    }
}
