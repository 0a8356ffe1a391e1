//! Named, tracked tasks: none is detached, shutdown waits for all.

use std::future::Future;
use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Spawns tasks and waits for them at shutdown; cheap to clone, clones share the same set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// The runtime to run on if not the caller's, and what ends its thread.
    own: Option<(Handle, CancellationToken)>,
}

impl Tasks {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set whose tasks run on a thread of their own, which ends with [`Self::shutdown`].
    ///
    /// # Errors
    /// When the system gives no thread or no event queue for it.
    pub fn on_own_thread(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let ended = CancellationToken::new();
        let own = Some((runtime.handle().clone(), ended.clone()));
        let run = move || runtime.block_on(ended.cancelled());
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { own, ..Self::default() })
    }

    /// Runs `future` on the current runtime, or the set's own; `name` shows in traces.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tracing::trace!(task = name, "spawn");
        let future = self.tracker.track_future(future);
        match &self.own {
            Some((runtime, _)) => runtime.spawn(future),
            None => tokio::spawn(future),
        }
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
        if let Some((_, ended)) = &self.own {
            ended.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn own_thread_runs_tasks_until_shutdown() {
        let here = thread::current().id();
        let tasks = Tasks::on_own_thread("test-host").unwrap();
        let there = tasks.spawn("who", async {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            (thread::current().id(), thread::current().name().map(str::to_owned))
        });
        let (id, name) = there.await.unwrap();
        assert_ne!(id, here);
        assert_eq!(name.as_deref(), Some("test-host"));
        tasks.shutdown().await;
        // Its thread ends a moment later; what comes then is dropped.
        while tasks.spawn("late", async {}).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
