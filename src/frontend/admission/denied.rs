//! The last time an account below its share was refused.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A refusal counts as recent for this time, in which the refused client tries again.
const RECENT: Duration = Duration::from_secs(5);

/// The time of the last refusal of an account below its share.
#[derive(Debug, Default)]
pub(crate) struct Denied {
    /// Monotonic milliseconds plus one; 0 for never.
    at: AtomicU64,
}

impl Denied {
    /// Records that an account below its share is refused.
    pub(crate) fn note(&self, now: Duration) {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.at.store(now.saturating_add(1), Ordering::Relaxed);
    }

    /// Whether the last refusal is recent.
    pub(crate) fn is_recent(&self, now: Duration) -> bool {
        let at = self.at.load(Ordering::Relaxed).checked_sub(1);
        at.is_some_and(|at| now.saturating_sub(Duration::from_millis(at)) < RECENT)
    }
}
