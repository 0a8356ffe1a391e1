//! The count of what one answer holds.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::payer::Payer;

/// Identifies a memory budget by its address, which is unique as long as the budget is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryId(pub(super) usize);

/// The bytes that one answer holds of a memory, in whichever buffer they are.
#[derive(Debug)]
pub(crate) struct MemoryUse {
    of: MemoryId,
    payer: Payer,
    bytes: AtomicU64,
    /// How long the answer has waited for bytes before its head was sent, in microseconds.
    waited: AtomicU64,
}

impl MemoryUse {
    /// The count of an answer that holds nothing yet.
    pub(super) const fn new(payer: Payer, of: MemoryId) -> Self {
        Self { of, payer, bytes: AtomicU64::new(0), waited: AtomicU64::new(0) }
    }

    /// How long the answer has waited for bytes before its head was sent.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }

    /// Adds to the time that the answer has waited.
    pub(super) fn wait_more(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(micros, Ordering::Relaxed);
    }

    /// The memory that the bytes are of.
    pub(super) const fn of(&self) -> MemoryId {
        self.of
    }

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
