//! Memory for request bodies: bounded over all requests, taken as bytes arrive, so that a slow client holds little.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::frontend::errors;
use crate::protocol::Error;

/// The unit permits are counted in: a semaphore counts to 2^32 at most.
const UNIT: u64 = 1024;

/// What bodies of running requests may take together.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Budget {
    /// A budget of about `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Arc::new(Semaphore::new(usize::try_from(bytes / UNIT).unwrap_or(usize::MAX >> 4))))
    }

    /// Takes memory for a piece.
    ///
    /// # Errors
    /// `ServerBusy` when other requests hold it all: waiting for memory while holding some could wait for ever.
    pub(crate) fn take(&self, bytes: usize) -> Result<Held, Error> {
        let units = u32::try_from((bytes as u64).div_ceil(UNIT)).unwrap_or(u32::MAX);
        match Arc::clone(&self.0).try_acquire_many_owned(units) {
            Ok(permit) => Ok(Held(permit)),
            Err(_) => Err(errors::busy()),
        }
    }
}
