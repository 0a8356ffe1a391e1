//! Recent changes, for watches. Their memory is bounded. A watch that needs older changes gets an
//! error; it never skips changes.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Notify;

use super::api::Error;
use super::api::Event;
use super::api::Revision;
use super::api::Watch;

/// The most changes that are kept. All of a partition map of ten thousand entries can change before
/// a watch has to read it again.
pub(super) const HISTORY_EVENTS_MAX: usize = 16_384;
/// The most bytes of keys and values that are kept.
pub(super) const HISTORY_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Kept {
    /// All changes after this revision are in `events`.
    floor: Revision,
    events: VecDeque<Event>,
    bytes: usize,
}

/// The changes of one open store.
#[derive(Debug)]
pub(super) struct History {
    kept: Mutex<Kept>,
    /// Grows with each change of `kept`.
    version: AtomicU64,
    /// Wakes the watches in the order in which they began to wait, which a simulation can repeat.
    changed: Notify,
}

impl History {
    /// A history that has no changes up to `floor`.
    pub(super) fn new(floor: Revision) -> Self {
        let kept = Kept { floor, events: VecDeque::new(), bytes: 0 };
        let (version, changed) = (AtomicU64::new(0), Notify::new());
        Self { kept: Mutex::new(kept), version, changed }
    }

    /// Adds the changes of one or more transactions, in revision order, and wakes the watches.
    pub(super) fn publish(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut kept = self.lock();
        kept.bytes += events.iter().map(size).sum::<usize>();
        kept.events.extend(events);
        while kept.events.len() > HISTORY_EVENTS_MAX || kept.bytes > HISTORY_BYTES_MAX {
            let Some(gone) = kept.events.pop_front() else { break };
            kept.bytes -= size(&gone);
            // Even if events of the same revision are left: a part of a transaction is a gap.
            kept.floor = gone.revision;
        }
        drop(kept);
        self.wake();
    }

    fn wake(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Restarts the history at a revision, because not all changes up to it are known. Watches that
    /// have not reached it get an error.
    pub(super) fn restart(&self, floor: Revision) {
        let mut kept = self.lock();
        *kept = Kept { floor, events: VecDeque::new(), bytes: 0 };
        drop(kept);
        self.wake();
    }

    /// Changes under `prefix` after `after`.
    fn since(&self, prefix: &[u8], after: Revision) -> Result<Changes, Error> {
        let kept = self.lock();
        if after < kept.floor {
            return Err(Error::Compacted);
        }
        let start = kept.events.partition_point(|event| event.revision <= after);
        let seen = kept.events.back().map_or(kept.floor, |event| event.revision).max(after);
        let events = kept.events.range(start..).filter(|event| event.key.starts_with(prefix));
        Ok(Changes { events: events.cloned().collect(), seen })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes under a prefix.
struct Changes {
    events: Vec<Event>,
    /// All changes up to this revision are in `events`.
    seen: Revision,
}

fn size(event: &Event) -> usize {
    event.key.len() + event.value.as_ref().map_or(0, Bytes::len)
}

/// A watch over a [`History`].
#[derive(Debug)]
pub(super) struct HistoryWatch {
    history: Arc<History>,
    prefix: Bytes,
    /// Changes up to this revision were delivered or are in `ready`.
    seen: Revision,
    ready: VecDeque<Event>,
    /// The version of the history before it was read last.
    version: u64,
}

impl HistoryWatch {
    /// Watches changes under `prefix` after `after`.
    pub(super) fn new(
        history: &Arc<History>,
        prefix: &[u8],
        after: Revision,
    ) -> Result<Self, Error> {
        let version = history.version.load(Ordering::Acquire);
        let Changes { events, seen } = history.since(prefix, after)?;
        Ok(Self {
            history: Arc::clone(history),
            prefix: Bytes::copy_from_slice(prefix),
            seen,
            ready: events.into(),
            version,
        })
    }

    /// The next change, if there is one already.
    pub(super) fn take(&mut self) -> Result<Option<Event>, Error> {
        if self.ready.is_empty() {
            // Before the history is read, so that a change in between ends the next wait.
            self.version = self.history.version.load(Ordering::Acquire);
            let Changes { events, seen } = self.history.since(&self.prefix, self.seen)?;
            self.seen = seen;
            self.ready = events.into();
        }
        Ok(self.ready.pop_front())
    }

    /// Waits until there may be a further change. Cancel safe.
    pub(super) async fn changed(&mut self) {
        loop {
            let mut changed = pin!(self.history.changed.notified());
            changed.as_mut().enable();
            if self.history.version.load(Ordering::Acquire) != self.version {
                return;
            }
            changed.await;
        }
    }
}

#[async_trait]
impl Watch for HistoryWatch {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.take()? {
                return Ok(event);
            }
            self.changed().await;
        }
    }
}
