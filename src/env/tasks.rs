//! Named, tracked tasks: none is detached, shutdown waits for all.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Spawns tasks and waits for them at shutdown; cheap to clone, clones share the same set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `future` on the current runtime; `name` shows in traces.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tracing::trace!(task = name, "spawn");
        tokio::spawn(self.tracker.track_future(future))
    }

    /// Runs blocking work on the runtime's blocking pool (inline where there is none to spare, as in simulation).
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn spawn_blocking<F, T>(&self, name: &'static str, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        tracing::trace!(task = name, "spawn blocking");
        tokio::task::spawn_blocking(work)
    }

    /// Fires when the program should stop; long loops select on it.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks all tasks to stop and waits until they have.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
