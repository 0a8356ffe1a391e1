//! Named, tracked tasks: none is detached, shutdown waits for all, and no panic is silent.
//!
//! Every panic is counted by task name and logged (`health.rs`). How a task is started says what
//! follows from a panic:
//!
//! | started with | after a panic |
//! |---|---|
//! | [`Tasks::spawn`] | whoever awaits the handle decides |
//! | [`Env::supervise`] | the task is started again, after a pause that grows |
//! | [`Tasks::spawn_or_stop`] | what the task served is stopped, and `/readyz` names the task |

mod health;

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::env::Env;
use crate::env::identified;
use crate::types::request;

pub use health::TaskHealth;

/// The pause before a task is started again after its first panic; it doubles with every further
/// one.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// The pause does not grow beyond this; a task that ran for longer has recovered, and its next
/// pause is short again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Spawns tasks and waits for them at shutdown; cheap to clone, clones share the same set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// The runtime to run on if not the caller's, and what ends its thread.
    own: Option<(Handle, CancellationToken)>,
    health: TaskHealth,
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

    /// The same set, whose panics are counted where those of `other` are.
    #[must_use]
    pub fn reporting_to(self, other: &Self) -> Self {
        Self { health: other.health.clone(), ..self }
    }

    /// What is known about panics of these tasks and of all that report to the same place.
    #[must_use]
    pub fn health(&self) -> TaskHealth {
        self.health.clone()
    }

    /// Runs `future` on the current runtime, or the set's own. A panic is counted under `name`,
    /// logged, and passed on to whoever awaits the handle.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let health = self.health.clone();
        self.start(
            name,
            AssertUnwindSafe(future).catch_unwind().map(move |ended| {
                ended.unwrap_or_else(|panic| {
                    health.panicked(name, panic.as_ref());
                    panic::resume_unwind(panic)
                })
            }),
        )
    }

    /// As [`Self::spawn`], for a part of a request: what it logs carries the request's id.
    pub fn spawn_part<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn(name, identified(request::current(), future))
    }

    /// As [`Self::spawn`], for a task that cannot be started again. After a panic `stop` is called
    /// with the panic's message: it stops what the task served. From then on
    /// [`TaskHealth::stopped`] names the task.
    pub fn spawn_or_stop<F, S>(&self, name: &'static str, future: F, stop: S) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
        S: FnOnce(&str) + Send + 'static,
    {
        let health = self.health.clone();
        health.expect(name);
        self.start(
            name,
            AssertUnwindSafe(future).catch_unwind().map(move |ended| {
                if let Err(panic) = ended {
                    let why = health.panicked(name, panic.as_ref());
                    stop(&why);
                    health.stop(name, why);
                }
            }),
        )
    }

    /// Runs blocking work on the runtime's blocking pool (inline where there is none to spare, as
    /// in simulation). A panic is counted under `name`, logged, and passed on to whoever awaits the
    /// handle.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn spawn_blocking<F, T>(&self, name: &'static str, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        tracing::trace!(task = name, "spawn blocking");
        let health = self.health.clone();
        tokio::task::spawn_blocking(move || {
            panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                health.panicked(name, panic.as_ref());
                panic::resume_unwind(panic)
            })
        })
    }

    #[expect(clippy::disallowed_methods, reason = "the seam")]
    fn start<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
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

impl Env {
    /// Runs the task that `make` makes until it ends. After a panic it is made and run again, so
    /// `make` must begin from state that the panic left whole. The pause before that is 1 s and
    /// doubles up to a minute; `stop` ends it.
    pub fn supervise<M, F>(
        &self,
        name: &'static str,
        stop: CancellationToken,
        mut make: M,
    ) -> JoinHandle<()>
    where
        M: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (clock, health) = (self.clock.clone(), self.tasks.health());
        health.expect(name);
        self.tasks.spawn(name, async move {
            let mut pause = RESTART_PAUSE;
            loop {
                let began = clock.monotonic();
                let ended = AssertUnwindSafe(async { make().await }).catch_unwind().await;
                let Err(panic) = ended else { return };
                note(&health, name, panic);
                if clock.monotonic().saturating_sub(began) > RESTART_PAUSE_MAX {
                    pause = RESTART_PAUSE;
                }
                tracing::warn!(task = name, ?pause, "the task is started again after a pause");
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = clock.sleep(pause) => {}
                }
                pause = (pause * 2).min(RESTART_PAUSE_MAX);
            }
        })
    }
}

/// Takes the panic by value: it is not `Sync`, so no reference to it may live across a pause.
#[expect(clippy::needless_pass_by_value, reason = "dropped here, before the caller waits")]
fn note(health: &TaskHealth, name: &'static str, panic: Box<dyn Any + Send>) {
    health.panicked(name, panic.as_ref());
}

#[cfg(test)]
mod tests;
