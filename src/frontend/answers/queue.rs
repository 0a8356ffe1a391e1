//! The payers that wait for memory, in turn.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::payer::Key;
use super::payer::Payer;
use super::reservation::Reservation;

/// One queue of payers.
#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: Mutex<Lines>,
    /// As many as `lines` has, to be looked at without the lock.
    waiters: AtomicUsize,
}

/// One line for each payer, served in turn: many wishes of one payer that has its share must not
/// hide the others.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// None of them is empty.
    of: HashMap<Key, VecDeque<Waiting>>,
    /// Each payer that waits, once.
    turns: VecDeque<Key>,
    len: usize,
}

/// One wish.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) payer: Payer,
    pub(super) bytes: u64,
    pub(super) promise: oneshot::Sender<Reservation>,
}

impl Queue {
    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) == 0
    }

    /// Lets a payer wait for bytes, unless `most` wait already.
    pub(super) fn push(
        &self,
        payer: Payer,
        bytes: u64,
        most: usize,
    ) -> Option<oneshot::Receiver<Reservation>> {
        self.with(|lines| {
            if lines.len >= most {
                lines.forget_who_gave_up();
            }
            let room = lines.len < most;
            let (promise, promised) = oneshot::channel();
            if room {
                lines.push(Waiting { payer, bytes, promise });
            }
            room.then_some(promised)
        })
    }

    /// Changes the lines.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Lines) -> T) -> T {
        let mut lines: MutexGuard<'_, Lines> =
            self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut lines);
        self.waiters.store(lines.len, Ordering::SeqCst);
        changed
    }
}

impl Lines {
    /// Payers that wait.
    pub(super) fn payers(&self) -> usize {
        self.turns.len()
    }

    fn push(&mut self, waiting: Waiting) {
        let key = waiting.payer.key();
        let line = self.of.entry(key).or_default();
        if line.is_empty() {
            self.turns.push_back(key);
        }
        line.push_back(waiting);
        self.len += 1;
    }

    /// The first of the payer whose turn it is, if it has not given up.
    pub(super) fn first(&mut self) -> Option<(Payer, u64)> {
        while let Some(key) = self.turns.front() {
            match self.of.get(key).and_then(VecDeque::front) {
                Some(first) if !first.promise.is_closed() => {
                    return Some((first.payer, first.bytes));
                }
                _ => drop(self.pop()),
            }
        }
        None
    }

    /// Takes out the first of the payer whose turn it is; the next payer has its turn then.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
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

    /// The next payer has its turn.
    pub(super) fn pass_over(&mut self) {
        if let Some(key) = self.turns.pop_front() {
            self.turns.push_back(key);
        }
    }

    fn forget_who_gave_up(&mut self) {
        self.of.retain(|_, line| {
            line.retain(|waiting| !waiting.promise.is_closed());
            !line.is_empty()
        });
        self.turns.retain(|key| self.of.contains_key(key));
        self.len = self.of.values().map(VecDeque::len).sum();
    }
}
