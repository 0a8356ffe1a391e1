//! The queue of requests for memory. Payers are served in turn.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::payer::LineKey;
use super::payer::Payer;

/// Demands that wait for a `T`. That is a reservation, which the budget above makes.
#[derive(Debug)]
pub(super) struct Queue<T> {
    lines: Mutex<Lines<T>>,
    /// The number of demands in `lines`, readable without the lock.
    waiters: AtomicUsize,
}

/// One line for each payer. Payers are served in turn, so that many demands of one payer do not
/// delay the others.
#[derive(Debug)]
pub(super) struct Lines<T> {
    /// The line of each payer; no line is empty.
    of: HashMap<LineKey, VecDeque<Waiter<T>>>,
    /// The waiting payers in the order of their turns, each once.
    turns: VecDeque<LineKey>,
    len: usize,
}

/// The bytes that a payer needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) payer: Payer,
    pub(super) bytes: u64,
}

/// A demand that waits.
#[derive(Debug)]
pub(super) struct Waiter<T> {
    pub(super) demand: Demand,
    pub(super) promise: oneshot::Sender<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let lines = Lines { of: HashMap::new(), turns: VecDeque::new(), len: 0 };
        Self { lines: Mutex::new(lines), waiters: AtomicUsize::new(0) }
    }
}

impl<T> Queue<T> {
    /// Whether no payer waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) == 0
    }

    /// Adds a demand, and returns the receiver of its bytes; `None` when `most` demands wait
    /// already.
    pub(super) fn push(&self, demand: Demand, most: usize) -> Option<oneshot::Receiver<T>> {
        self.with(|lines| {
            if lines.len >= most {
                lines.drop_abandoned();
            }
            let room = lines.len < most;
            let (promise, promised) = oneshot::channel();
            if room {
                lines.push(Waiter { demand, promise });
            }
            room.then_some(promised)
        })
    }

    /// Changes the lines under the lock, and updates the count.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut Lines<T>) -> R) -> R {
        let mut lines: MutexGuard<'_, Lines<T>> =
            self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut lines);
        self.waiters.store(lines.len, Ordering::SeqCst);
        changed
    }
}

impl<T> Lines<T> {
    /// The number of payers that wait.
    pub(super) fn payers(&self) -> usize {
        self.turns.len()
    }

    fn push(&mut self, waiter: Waiter<T>) {
        let key = waiter.demand.payer.line();
        let line = self.of.entry(key).or_default();
        if line.is_empty() {
            self.turns.push_back(key);
        }
        line.push_back(waiter);
        self.len += 1;
    }

    /// The first demand of the payer whose turn it is. Drops demands whose callers gave up.
    pub(super) fn first(&mut self) -> Option<Demand> {
        while let Some(key) = self.turns.front() {
            match self.of.get(key).and_then(VecDeque::front) {
                Some(first) if !first.promise.is_closed() => {
                    return Some(first.demand);
                }
                _ => drop(self.pop()),
            }
        }
        None
    }

    /// Removes the first demand of the payer whose turn it is, and gives the turn to the next
    /// payer.
    pub(super) fn pop(&mut self) -> Option<Waiter<T>> {
        let key = self.turns.pop_front()?;
        let line = self.of.get_mut(&key)?;
        let first = line.pop_front();
        self.len -= usize::from(first.is_some());
        if line.is_empty() {
            self.of.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        first
    }

    /// Gives the turn to the next payer and keeps the demand.
    pub(super) fn pass_over(&mut self) {
        if let Some(key) = self.turns.pop_front() {
            self.turns.push_back(key);
        }
    }

    fn drop_abandoned(&mut self) {
        self.of.retain(|_, line| {
            line.retain(|waiter| !waiter.promise.is_closed());
            !line.is_empty()
        });
        self.turns.retain(|key| self.of.contains_key(key));
        self.len = self.of.values().map(VecDeque::len).sum();
    }
}
