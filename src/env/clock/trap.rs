//! A clock for tests of tasks that panic.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Clock;
use crate::types::Timestamp;

/// Follows another clock. A sleep that was set as a trap panics, once, when it would have ended, or
/// several times as it begins.
#[derive(Debug)]
pub(crate) struct TrapClock {
    inner: Arc<dyn Clock>,
    trap: Mutex<Option<Duration>>,
    /// Sleeps of a length: how many begin before some panic, and how many do.
    snap: Mutex<(Duration, usize, usize)>,
}

impl TrapClock {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        Self { inner, trap: Mutex::default(), snap: Mutex::default() }
    }

    /// The next sleep of just this length panics.
    pub(crate) fn trap(&self, sleep: Duration) {
        *self.trap.lock().unwrap() = Some(sleep);
    }

    /// Of the next sleeps of just this length `after` begin as they should, and `count` panic then.
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
