//! A clock for tests of tasks that panic.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Clock;
use crate::types::Timestamp;

/// Follows another clock. Panics at the end of a chosen sleep, once, or at the beginning of chosen
/// sleeps, several times.
#[derive(Debug)]
pub(crate) struct TrapClock {
    inner: Arc<dyn Clock>,
    trap: Mutex<Option<Duration>>,
    /// The length of the sleeps that panic at the beginning, how many do not panic before that, and
    /// how many panic.
    snap: Mutex<(Duration, usize, usize)>,
}

impl TrapClock {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        Self { inner, trap: Mutex::default(), snap: Mutex::default() }
    }

    /// Makes the next sleep of exactly this length panic at its end.
    pub(crate) fn trap(&self, sleep: Duration) {
        *self.trap.lock().unwrap() = Some(sleep);
    }

    /// Of the next sleeps of exactly this length, `after` do not panic, and the next `count` panic
    /// at the beginning.
    pub(crate) fn snap(&self, sleep: Duration, (after, count): (usize, usize)) {
        *self.snap.lock().unwrap() = (sleep, after, count);
    }

    fn snaps(&self, duration: Duration) -> bool {
        match &mut *self.snap.lock().unwrap() {
            (sleep, 0, count) if *sleep == duration && *count > 0 => {
                *count -= 1;
                true
            }
            (sleep, after, _) if *sleep == duration && *after > 0 => {
                *after -= 1;
                false
            }
            _ => false,
        }
    }
}

#[async_trait]
impl Clock for TrapClock {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    fn thread_cpu(&self) -> Duration {
        self.inner.thread_cpu()
    }

    async fn sleep(&self, duration: Duration) {
        assert!(!self.snaps(duration), "snapped");
        self.inner.sleep(duration).await;
        let sprung = self.trap.lock().unwrap().take_if(|trap| *trap == duration).is_some();
        assert!(!sprung, "sprung");
    }
}
