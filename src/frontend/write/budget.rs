//! Memory for request bodies: bounded over all requests, taken as bytes arrive, so that a slow
//! client holds little; shared by accounts, so that one that uploads much leaves some to the
//! others.

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

/// What a piece takes beside its bytes, about: a client may send them one by one.
pub(super) const PIECE_BYTES: usize = 128;

/// What bodies of running requests may take together.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Memory>);

#[derive(Debug)]
struct Memory {
    shares: Shares,
    clock: Arc<dyn Clock>,
    denied: Denied,
}

/// What one body holds of it.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    account: AccountId,
    bytes: AtomicU64,
}

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<Memory>,
    body: Arc<BodyMemory>,
    bytes: u64,
}

impl BodyMemory {
    /// Of a body of this account; it holds nothing yet.
    pub(crate) fn of(account: AccountId) -> Arc<Self> {
        Arc::new(Self { account, bytes: AtomicU64::new(0) })
    }

    /// The account for which it is counted.
    pub(crate) const fn account(&self) -> AccountId {
        self.account
    }

    /// The account whose memory it holds; `None` while it holds none.
    pub(crate) fn holder(&self) -> Option<AccountId> {
        (self.bytes.load(Ordering::Relaxed) > 0).then_some(self.account)
    }
}

/// A body that is in memory, and the memory it takes. Whoever has the one has the other: the
/// request may be gone before its body is.
#[derive(Debug)]
pub(crate) struct InMemory {
    pub(crate) pieces: Vec<Bytes>,
    /// Shared by the parts of one body.
    pub(crate) held: Arc<[Held]>,
}

impl InMemory {
    /// A body that is counted elsewhere.
    pub(crate) fn uncounted(pieces: Vec<Bytes>) -> Self {
        Self { pieces, held: Arc::default() }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl Budget {
    /// A budget of `bytes`.
    pub(crate) fn new(bytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Memory { shares: Shares::new(bytes), clock, denied: Denied::default() }))
    }

    /// Takes memory for a piece of a body.
    ///
    /// # Errors
    /// `ServerBusy` when other requests hold it all: waiting for memory while holding some could
    /// wait for ever.
    pub(crate) fn take(&self, body: &Arc<BodyMemory>, bytes: usize) -> Result<Held, Refusal> {
        let bytes = bytes.saturating_add(PIECE_BYTES) as u64;
        let now = self.0.clock.monotonic();
        match self.0.shares.take(body.account, bytes, now) {
            Taken::Yes => {
                body.bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(Held { memory: Arc::clone(&self.0), body: Arc::clone(body), bytes })
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

impl Drop for Held {
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
        let budget = Budget::new(64 << 10, Arc::new(OsClock::new()));
        let body = BodyMemory::of(AccountId::new(1));
        let held: Vec<Held> = (0..).map_while(|_| budget.take(&body, 1).ok()).collect();
        assert_eq!(held.len(), (64 << 10) / (PIECE_BYTES + 1));
        assert_eq!(body.holder(), Some(AccountId::new(1)));
        drop(held);
        assert_eq!(body.holder(), None);
        assert!(budget.take(&body, (64 << 10) - PIECE_BYTES).is_ok(), "all is given back");
    }
}
