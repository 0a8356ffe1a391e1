//! Named, tracked tasks. Shutdown waits for all of them, and every panic is reported.
//!
//! Every panic is counted by task name and logged (`health.rs`). What happens after a panic depends
//! on how the task was started:
//!
//! | started with | after a panic |
//! |---|---|
//! | [`Tasks::spawn`] | the caller that awaits the handle gets an error |
//! | [`Env::supervise`] | the task is started again, after a growing pause |
//! | [`Tasks::spawn_or_stop`] | its disk or partition is stopped, and `/readyz` names the task |
//!
//! `control.rs`: the tasks of a simulated process can be killed and can stand still.

mod control;
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
use crate::env::working_on;
use crate::types::request;

pub use control::TaskControl;
pub use health::TaskHealth;

/// The pause before a task is started again after its first panic. It doubles with each further
/// panic.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause. After a task has run for longer than this, its next pause is the shortest
/// again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A set of tasks: spawns them and waits for them at shutdown. Cheap to clone; clones share the
/// set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// If the set has its own runtime: its handle, and the token that ends its thread.
    own: Option<(Handle, CancellationToken)>,
    /// Of a simulated process.
    control: Option<TaskControl>,
    health: TaskHealth,
}

impl Tasks {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set whose tasks run on a separate thread. [`Self::shutdown`] ends the thread.
    ///
    /// # Errors
    /// If the system has no further thread or event queue.
    pub fn on_own_thread(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let ended = CancellationToken::new();
        let own = Some((runtime.handle().clone(), ended.clone()));
        let run = move || runtime.block_on(ended.cancelled());
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { own, ..Self::default() })
    }

    /// An empty set of a simulated process, which can be killed and can stand still.
    #[must_use]
    pub fn controlled() -> (Self, TaskControl) {
        let control = TaskControl::default();
        (Self { control: Some(control.clone()), ..Self::default() }, control)
    }

    /// The same set, with its panics counted together with those of `other`.
    #[must_use]
    pub fn reporting_to(self, other: &Self) -> Self {
        Self { health: other.health.clone(), ..self }
    }

    /// The panics of these tasks and of all sets that are counted together with this one.
    #[must_use]
    pub fn health(&self) -> TaskHealth {
        self.health.clone()
    }

    /// Runs `future` on the current runtime, or on the set's own. A panic is counted under `name`,
    /// logged, and passed on to the caller that awaits the handle.
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

    /// As [`Self::spawn`], for a part of a request: its log lines have the request's id.
    pub fn spawn_part<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn(name, working_on(request::current_whole(), future))
    }

    /// As [`Self::spawn`], for a task that cannot be started again. After a panic, `stop` is called
    /// with the panic's message. It must stop the disk or partition that needs the task. From then
    /// on [`TaskHealth::stopped`] names the task.
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

    /// Runs blocking work on the runtime's blocking pool. A panic is counted under `name`, logged,
    /// and passed on to the caller that awaits the handle.
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
        match (&self.own, &self.control) {
            (Some((runtime, _)), _) => runtime.spawn(future),
            (None, Some(control)) => tokio::spawn(control.controlled(future)),
            (None, None) => tokio::spawn(future),
        }
    }

    /// Fires when the program should stop. Long loops select on it.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks all tasks to stop and waits until they have ended.
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
    /// Runs the task that `make` returns until it ends. After a panic `make` is called again, so it
    /// must begin from state that a panic leaves intact. The pause before that is 1 s and doubles
    /// with each panic, up to a minute. `stop` ends the pause.
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
                tracing::warn!(
                    task = name,
                    ?pause,
                    "a task panicked and is started again after a pause"
                );
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

/// Counts and logs a panic. Takes it by value: it is not `Sync`, so no reference to it may live
/// across a pause.
#[expect(clippy::needless_pass_by_value, reason = "dropped here, before the caller waits")]
fn note(health: &TaskHealth, name: &'static str, panic: Box<dyn Any + Send>) {
    health.panicked(name, panic.as_ref());
}

#[cfg(test)]
mod tests;
