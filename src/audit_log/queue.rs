//! The bounded queue of lines that wait for the writer.

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
use super::metrics::LineCounts;
use super::metrics::Metrics;

/// How long a change waits for room in the queue before its line is dropped.
pub const CHANGE_WAIT: Duration = Duration::from_secs(1);
/// The most bytes of waiting lines; a request's line beyond them is dropped.
const BYTES_MAX: usize = 8 << 20;
/// The same for a change's line. Requests never take the difference.
const CHANGE_BYTES_MAX: usize = BYTES_MAX + (1 << 20);
/// The shortest time between two log lines about dropped lines.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The handle that adds lines to the audit log; cheap to clone. The default handle is off and
/// writes nothing.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    queue: Option<Arc<Queue>>,
}

/// The queue between handles and writer.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Metrics,
    /// Whether requests have lines too.
    requests: bool,
    state: Mutex<State>,
    /// Notified when a line was added, and when the queue was closed.
    filled: Notify,
    /// Notified when lines were written, and when the queue was closed.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    /// Bytes of `lines` and of the lines that the writer has taken and not yet written.
    bytes: usize,
    /// Lines that the writer has taken and not yet written.
    taken: LineCounts,
    /// Dropped lines that no line of the log records yet.
    lost: LineCounts,
    /// When dropped lines were last logged.
    warned: Option<Duration>,
    closed: bool,
}

/// Lines that were taken from the queue.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) batch: Batch,
    /// Whether the queue is closed.
    pub(super) is_closed: bool,
}

#[derive(Debug)]
struct Line {
    text: Bytes,
    is_change: bool,
}

/// A change's line that waits for room. If the client disconnects, the waiting future is dropped.
/// The line is added then if there is room.
struct Waiting<'a> {
    queue: &'a Queue,
    text: Option<Bytes>,
}

impl Waiting<'_> {
    /// Tries to add the line. Returns whether it is in the queue.
    fn push(&mut self) -> bool {
        let Some(text) = self.text.take() else { return true };
        self.text = self.queue.push(text, true).err();
        self.text.is_none()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.push() {
            self.queue.drop_line(true);
        }
    }
}

/// Lines to be written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Lines that are not yet written.
    pub(super) lines: VecDeque<Bytes>,
    /// Bytes of all lines, as the queue counts them.
    pub(super) bytes: usize,
    /// Whether a line is that of a change. These lines must be durable.
    pub(super) has_changes: bool,
}

impl AuditLog {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self { queue: Some(queue) }
    }

    /// Whether lines are written. While the log is off, this check is its only cost.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether requests have lines too.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.requests)
    }

    /// Adds a change's line and waits up to [`CHANGE_WAIT`] for room. When the log is closed, the
    /// line is dropped immediately. If the future is dropped while it waits, the line is added if
    /// there is room now, and dropped otherwise. Every dropped line is counted.
    pub async fn change(&self, entry: &Entry, change: &Change) {
        let Some(queue) = &self.queue else { return };
        let text = Bytes::from(line::change(queue.clock.now(), entry, change));
        let mut waiting = Waiting { queue, text: Some(text) };
        let mut waited = pin!(queue.clock.sleep(CHANGE_WAIT));
        loop {
            let mut room = pin!(queue.room.notified());
            room.as_mut().enable();
            // A closed queue never has room again.
            if waiting.push() || queue.is_closed() {
                return;
            }
            tokio::select! {
                biased;
                () = room => {}
                () = &mut waited => return,
            }
        }
    }

    /// As [`Self::change`], for a caller that cannot wait: without room the line is dropped.
    pub fn change_now(&self, entry: &Entry, change: &Change) {
        let Some(queue) = &self.queue else { return };
        let text = line::change(queue.clock.now(), entry, change);
        if queue.push(text.into(), true).is_err() {
            queue.drop_line(true);
        }
    }

    /// Adds a request's line if requests are recorded; without room it is dropped.
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

    /// Adds a line.
    ///
    /// # Errors
    /// The line, when there is no room or the queue is closed.
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
        let mut dropped = LineCounts::default();
        dropped.add(is_change);
        self.dropped(dropped);
    }

    /// Counts lines that will never be written.
    pub(super) fn dropped(&self, lines: LineCounts) {
        if lines == LineCounts::default() {
            return;
        }
        self.metrics.lost(true, lines.changes);
        self.metrics.lost(false, lines.requests);
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.lost.changes += lines.changes;
        state.lost.requests += lines.requests;
        let LineCounts { changes, requests } = state.lost;
        if state.warned.is_some_and(|at| now.saturating_sub(at) < WARN_EVERY) {
            return;
        }
        state.warned = Some(now);
        drop(state);
        tracing::error!(
            changes,
            requests,
            "lines of the audit log are dropped: it cannot be written as fast as they arrive"
        );
    }

    /// Waits for lines and takes about `bytes_max` bytes of them. Empty when the queue is closed
    /// and has no more lines.
    pub(super) async fn take(&self, bytes_max: usize) -> Batch {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let Taken { batch, is_closed } = self.take_now(bytes_max);
            if is_closed || !batch.lines.is_empty() {
                return batch;
            }
            filled.await;
        }
    }

    /// Takes about `bytes_max` bytes of lines, as many as there are now.
    pub(super) fn take_now(&self, bytes_max: usize) -> Taken {
        let mut batch = Batch::default();
        let mut state = self.state();
        while batch.bytes < bytes_max
            && let Some(line) = state.lines.pop_front()
        {
            batch.bytes += line.text.len();
            batch.has_changes |= line.is_change;
            state.taken.add(line.is_change);
            batch.lines.push_back(line.text);
        }
        // After all lines of the queue.
        if state.lost != LineCounts::default() && state.lines.is_empty() {
            let LineCounts { changes, requests } = std::mem::take(&mut state.lost);
            let text = line::lost(self.clock.now(), changes, requests);
            state.bytes += text.len();
            batch.bytes += text.len();
            batch.lines.push_back(text.into());
        }
        Taken { batch, is_closed: state.closed }
    }

    /// Releases the room of a batch that was written.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        state.taken = LineCounts::default();
        drop(state);
        self.room.notify_waiters();
    }

    /// Closes the queue when nothing is written any more, and counts all its lines as dropped, with
    /// those of the batch that the writer has taken.
    pub(super) fn abandon(&self) {
        self.close();
        let mut state = self.state();
        let mut lines = std::mem::take(&mut state.taken);
        std::mem::take(&mut state.lines).iter().for_each(|line| lines.add(line.is_change));
        state.bytes = 0;
        drop(state);
        self.dropped(lines);
    }

    /// Refuses further lines; the lines in the queue are still written.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }
}
