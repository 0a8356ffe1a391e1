//! A change of the map does not wait for a compaction, which may take minutes. The compaction ends
//! early and is started again later.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Asks a partition's compaction to end early while changes of the map wait for it.
#[derive(Debug, Default)]
pub(crate) struct CompactionYield {
    wanted: AtomicUsize,
    rung: Notify,
}

impl CompactionYield {
    /// Waits until a change wants the compaction to end. Cancel safe.
    pub(crate) async fn wanted(&self) {
        loop {
            // Registered before the check, so that it gets every notification after the check.
            let rung = self.rung.notified();
            if self.wanted.load(Ordering::SeqCst) > 0 {
                return;
            }
            rung.await;
        }
    }

    /// Asks the compaction to end until the returned value is dropped.
    pub(super) fn want(&self) -> Wants<'_> {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let wants = Wants(self);
        self.rung.notify_waiters();
        wants
    }
}

/// A change that waits for the compaction to end.
pub(super) struct Wants<'a>(&'a CompactionYield);

impl Drop for Wants<'_> {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::SeqCst);
    }
}
