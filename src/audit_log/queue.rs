//! Lines on their way to the writer: a bounded queue.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::env::Clock;

use super::line;
use super::line::Change;
use super::line::Entry;
use super::metrics::Metrics;

/// How long a change waits for room in the queue before its line is dropped.
pub const CHANGE_WAIT: Duration = Duration::from_secs(1);
/// Bytes of lines that wait for the writer, beyond which those of requests are dropped.
const BYTES_MAX: usize = 8 << 20;
/// The same for changes: room that requests never take.
const CHANGE_BYTES_MAX: usize = BYTES_MAX + (1 << 20);
/// Dropped lines are logged no more often than this.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What takes lines of the audit log; cheap to clone. The default is off: then nothing is ever
/// written.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    queue: Option<Arc<Queue>>,
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Metrics,
    /// Whether requests have lines too.
    requests: bool,
    state: Mutex<State>,
    /// There are lines, or there will be none any more.
    filled: Notify,
    /// Lines were written.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    /// Of `lines` and of what the writer has taken and not yet written.
    bytes: usize,
    lost_changes: u64,
    lost_requests: u64,
    /// When dropped lines were last logged.
    warned: Option<Duration>,
    closed: bool,
}

#[derive(Debug)]
struct Line {
    text: Bytes,
    is_change: bool,
}

/// Lines to be written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: VecDeque<Bytes>,
    /// Of all lines, as the queue counts them.
    pub(super) bytes: usize,
    pub(super) changes: u64,
    pub(super) requests: u64,
}

impl AuditLog {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self { queue: Some(queue) }
    }

    /// Whether anything is written: all that is paid while it is off.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether requests have lines too.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.requests)
    }

    /// Writes a change's line, waiting up to [`CHANGE_WAIT`] for room. Cancel safe but for the line
    /// itself.
    pub async fn change(&self, entry: &Entry, change: &Change) {
        let Some(queue) = &self.queue else { return };
        let mut text = Bytes::from(line::change(queue.clock.now(), entry, change));
        let mut waited = pin!(queue.clock.sleep(CHANGE_WAIT));
        loop {
            let mut room = pin!(queue.room.notified());
            room.as_mut().enable();
            match queue.push(text, true) {
                Ok(()) => return,
                Err(back) => text = back,
            }
            tokio::select! {
                biased;
                () = room => {}
                () = &mut waited => return queue.drop_line(true),
            }
        }
    }

    /// As [`Self::change`], for whoever cannot wait: without room the line is dropped at once.
    pub fn change_now(&self, entry: &Entry, change: &Change) {
        let Some(queue) = &self.queue else { return };
        let text = line::change(queue.clock.now(), entry, change);
        if queue.push(text.into(), true).is_err() {
            queue.drop_line(true);
        }
    }

    /// Writes a request's line if they are wanted; without room it is dropped.
    pub fn request(&self, entry: &Entry) {
        let Some(queue) = self.queue.as_ref().filter(|queue| queue.requests) else { return };
        let text = line::request(queue.clock.now(), entry);
        if queue.push(text.into(), false).is_err() {
            queue.drop_line(false);
        }
    }
}

impl Queue {
    pub(super) fn new(clock: Arc<dyn Clock>, metrics: Metrics, requests: bool) -> Self {
        let (state, filled, room) = (Mutex::default(), Notify::new(), Notify::new());
        Self { clock, metrics, requests, state, filled, room }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, or gives it back when there is no room.
    fn push(&self, text: Bytes, is_change: bool) -> Result<(), Bytes> {
        let most = if is_change { CHANGE_BYTES_MAX } else { BYTES_MAX };
        let mut state = self.state();
        if state.closed || state.bytes + text.len() > most {
            return Err(text);
        }
        state.bytes += text.len();
        state.lines.push_back(Line { text, is_change });
        drop(state);
        self.metrics.queued(is_change);
        self.filled.notify_one();
        Ok(())
    }

    fn drop_line(&self, is_change: bool) {
        self.dropped(u64::from(is_change), u64::from(!is_change));
    }

    /// Notes lines that will never be written.
    pub(super) fn dropped(&self, changes: u64, requests: u64) {
        if changes + requests == 0 {
            return;
        }
        self.metrics.lost(true, changes);
        self.metrics.lost(false, requests);
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.lost_changes += changes;
        state.lost_requests += requests;
        let (changes, requests) = (state.lost_changes, state.lost_requests);
        if state.warned.is_some_and(|at| now.saturating_sub(at) < WARN_EVERY) {
            return;
        }
        state.warned = Some(now);
        drop(state);
        tracing::error!(
            changes,
            requests,
            "lines of the audit log are dropped: it cannot be written as fast as they come"
        );
    }

    /// The next lines, about `bytes_max` bytes of them; empty when none will come any more.
    pub(super) async fn take(&self, bytes_max: usize) -> Batch {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let (batch, closed) = self.take_now(bytes_max);
            if closed || !batch.lines.is_empty() {
                return batch;
            }
            filled.await;
        }
    }

    fn take_now(&self, bytes_max: usize) -> (Batch, bool) {
        let mut batch = Batch::default();
        let mut state = self.state();
        while batch.bytes < bytes_max
            && let Some(line) = state.lines.pop_front()
        {
            batch.bytes += line.text.len();
            if line.is_change {
                batch.changes += 1;
            } else {
                batch.requests += 1;
            }
            batch.lines.push_back(line.text);
        }
        // After the lines that were there before them.
        let lost = (state.lost_changes, state.lost_requests);
        if lost != (0, 0) && state.lines.is_empty() {
            (state.lost_changes, state.lost_requests) = (0, 0);
            let text = line::lost(self.clock.now(), lost.0, lost.1);
            state.bytes += text.len();
            batch.bytes += text.len();
            batch.lines.push_back(text.into());
        }
        (batch, state.closed)
    }

    /// Gives back the room of lines that are written, or never will be.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.room.notify_waiters();
    }

    /// Takes no more lines; those that are here are still written.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }
}
