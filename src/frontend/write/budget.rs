//! Memory for request bodies: bounded over all requests, taken as bytes arrive, so that a slow
//! client holds little; shared by accounts, so that one that uploads much leaves some to the
//! others.

use std::sync::Arc;

use bytes::Bytes;

use crate::env::Clock;
use crate::frontend::admission::Shares;
use crate::frontend::admission::Taken;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::Error;
use crate::types::AccountId;

/// What a piece takes beside its bytes, about: a client may send them one by one.
pub(super) const PIECE_BYTES: usize = 128;

/// What bodies of running requests may take together.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    shares: Arc<Shares>,
    clock: Arc<dyn Clock>,
}

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    shares: Arc<Shares>,
    account: AccountId,
    bytes: u64,
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
    pub(super) fn new(bytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self { shares: Arc::new(Shares::new(bytes)), clock }
    }

    /// Takes memory for a piece of an account's body.
    ///
    /// # Errors
    /// `ServerBusy` when other requests hold it all: waiting for memory while holding some could
    /// wait for ever.
    pub(crate) fn take(&self, account: AccountId, bytes: usize) -> Result<Held, Error> {
        let bytes = bytes.saturating_add(PIECE_BYTES) as u64;
        match self.shares.take(account, bytes, self.clock.monotonic()) {
            Taken::Yes => Ok(Held { shares: Arc::clone(&self.shares), account, bytes }),
            Taken::Soon | Taken::No => Err(errors::busy(Busy::BodyMemory)),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shares.give(self.account, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::OsClock;

    #[test]
    fn bytes_that_come_one_by_one_cost_what_they_take() {
        let budget = Budget::new(64 << 10, Arc::new(OsClock::new()));
        let account = AccountId::new(1);
        let held: Vec<Held> = (0..).map_while(|_| budget.take(account, 1).ok()).collect();
        assert_eq!(held.len(), (64 << 10) / (PIECE_BYTES + 1));
        drop(held);
        assert!(budget.take(account, (64 << 10) - PIECE_BYTES).is_ok(), "all is given back");
    }
}
