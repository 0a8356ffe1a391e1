//! A clock for tests of tasks that panic.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Clock;
use crate::types::Timestamp;

/// Follows another clock. A sleep that was set as a trap panics, once, when it would have ended.
#[derive(Debug)]
pub(crate) struct TrapClock {
    inner: Arc<dyn Clock>,
    trap: Mutex<Option<Duration>>,
}

impl TrapClock {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        Self { inner, trap: Mutex::default() }
    }

    /// The next sleep of just this length panics.
    pub(crate) fn trap(&self, sleep: Duration) {
        *self.trap.lock().unwrap() = Some(sleep);
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
        self.inner.sleep(duration).await;
        let sprung = self.trap.lock().unwrap().take_if(|trap| *trap == duration).is_some();
        assert!(!sprung, "sprung");
    }
}
