//! Control over the tasks of a simulated process: they stand still, as those of a process that the
//! system does not run, or end at once, as with a kill.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

/// The tasks of one simulated process.
#[derive(Clone, Debug, Default)]
pub struct TaskControl(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    /// The number of the next task.
    next: u64,
    /// How to have each task that has not ended looked at again.
    wakers: BTreeMap<u64, Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Runs,
    StandsStill,
    Killed,
}

impl TaskControl {
    /// Nothing of the process goes on, until [`Self::resume`]. The clock does.
    pub fn pause(&self) {
        self.set(Mode::Runs, Mode::StandsStill);
    }

    /// Ends [`Self::pause`].
    pub fn resume(&self) {
        self.set(Mode::StandsStill, Mode::Runs);
    }

    /// Ends the process. Whoever waits for one of its tasks waits for ever.
    pub fn kill(&self) {
        self.set(Mode::Runs, Mode::Killed);
        self.set(Mode::StandsStill, Mode::Killed);
    }

    /// Whether it was killed.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.lock().mode == Mode::Killed
    }

    fn set(&self, from: Mode, to: Mode) {
        let mut state = self.lock();
        if state.mode == from {
            state.mode = to;
            let wakers: Vec<Waker> = state.wakers.values().cloned().collect();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Makes a future a task of the process.
    pub(super) fn controlled<F: Future>(&self, future: F) -> Controlled<F> {
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        drop(state);
        Controlled { control: self.clone(), number, future: Some(Box::pin(future)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task of a simulated process.
#[derive(Debug)]
pub(super) struct Controlled<F> {
    control: TaskControl,
    number: u64,
    /// `None` after a kill.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Controlled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let number = self.number;
        let mut state = self.control.lock();
        state.wakers.insert(number, cx.waker().clone());
        let mode = state.mode;
        drop(state);
        match (mode, &mut self.future) {
            (Mode::Runs, Some(future)) => future.as_mut().poll(cx),
            (Mode::Killed, _) => {
                self.future = None;
                Poll::Pending
            }
            (Mode::Runs | Mode::StandsStill, _) => Poll::Pending,
        }
    }
}

impl<F> Drop for Controlled<F> {
    fn drop(&mut self) {
        self.control.lock().wakers.remove(&self.number);
    }
}
