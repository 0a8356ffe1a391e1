//! The request that a thread works on: its id, the trace of its client, and where it waited.
//!
//! Log lines read the ids from here. A span of `tracing` would cost every request allocations and
//! locks, although few requests are logged.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;

use crate::types::TraceParent;

thread_local! {
    static CURRENT: Cell<Option<CurrentRequest>> = const { Cell::new(None) };
}

/// A request that is worked on.
#[derive(Clone, Debug)]
pub struct CurrentRequest {
    /// Its id, as in its answer.
    pub id: Uuid,
    /// Where it stands in a trace: of its client, or one that begins with it.
    pub trace: Option<TraceParent>,
    /// Where it waited, while somebody wants to know.
    pub waits: Option<Arc<StageWaits>>,
    /// Whether it has a span.
    pub recorded: bool,
}

/// A stage in which a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// For the index: look-ups of rows, and commits until they are durable.
    Index,
    /// Until the bytes of its body are durable.
    Journal,
    /// For bytes of content from the disks.
    Read,
}

/// How long a request has waited in each stage. Its parts, which are tasks, share this.
#[derive(Debug, Default)]
pub struct StageWaits {
    /// Nanoseconds, by stage.
    waited: [AtomicU64; 3],
}

/// How long a request waited in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// [`Stage::Index`].
    pub index: Duration,
    /// [`Stage::Journal`].
    pub journal: Duration,
    /// [`Stage::Read`].
    pub read: Duration,
}

impl CurrentRequest {
    /// A request of which only the id is known.
    #[must_use]
    pub const fn of(id: Uuid) -> Self {
        Self { id, trace: None, waits: None, recorded: false }
    }
}

impl StageWaits {
    /// Adds a wait.
    pub fn add(&self, stage: Stage, waited: Duration) {
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.of(stage).fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The waits so far.
    #[must_use]
    pub fn times(&self) -> StageTimes {
        let time = |stage| Duration::from_nanos(self.of(stage).load(Ordering::Relaxed));
        StageTimes {
            index: time(Stage::Index),
            journal: time(Stage::Journal),
            read: time(Stage::Read),
        }
    }

    const fn of(&self, stage: Stage) -> &AtomicU64 {
        let [index, journal, read] = &self.waited;
        match stage {
            Stage::Index => index,
            Stage::Journal => journal,
            Stage::Read => read,
        }
    }
}

/// Shows the request that this thread works on. Nothing is shown while the thread ends.
fn look<T>(see: impl FnOnce(&CurrentRequest) -> Option<T>) -> Option<T> {
    let seen = CURRENT.try_with(|current| {
        let request = current.take();
        let seen = request.as_ref().and_then(see);
        current.set(request);
        seen
    });
    seen.ok().flatten()
}

/// The id of the request that this thread works on.
#[must_use]
pub fn current() -> Option<Uuid> {
    look(|request| Some(request.id))
}

/// The request that this thread works on.
#[must_use]
pub fn current_whole() -> Option<CurrentRequest> {
    look(|request| Some(request.clone()))
}

/// Where the request that this thread works on waited, if somebody wants to know.
#[must_use]
pub fn current_waits() -> Option<Arc<StageWaits>> {
    look(|request| request.waits.clone())
}

/// The trace of the request that this thread works on.
#[must_use]
pub fn current_trace() -> Option<TraceParent> {
    look(|request| request.trace)
}

/// Restores the previous request when it is dropped, also during a panic.
#[derive(Debug)]
pub struct Entered {
    before: Option<CurrentRequest>,
}

/// Sets the id of the request that this thread works on, or none, until the returned value is
/// dropped.
#[must_use]
pub fn enter(id: Option<Uuid>) -> Entered {
    Entered { before: CURRENT.replace(id.map(CurrentRequest::of)) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// Exchanges the requests back when it is dropped, also during a panic.
#[derive(Debug)]
pub struct Exchanged<'a> {
    place: &'a mut Option<CurrentRequest>,
}

/// Makes the request in `place` the one that this thread works on, until the returned value is
/// dropped. Meanwhile the previous one is in `place`: nothing is cloned.
#[must_use]
pub fn exchange(place: &mut Option<CurrentRequest>) -> Exchanged<'_> {
    *place = CURRENT.replace(place.take());
    Exchanged { place }
}

impl Drop for Exchanged<'_> {
    fn drop(&mut self) {
        *self.place = CURRENT.replace(self.place.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_each_stage_add_up() {
        let waits = StageWaits::default();
        for (stage, milliseconds) in
            [(Stage::Index, 1), (Stage::Journal, 20), (Stage::Index, 2), (Stage::Read, 300)]
        {
            waits.add(stage, Duration::from_millis(milliseconds));
        }
        let at = Duration::from_millis;
        assert_eq!(waits.times(), StageTimes { index: at(3), journal: at(20), read: at(300) });
    }

    #[test]
    fn exchanged_requests_are_exchanged_back() {
        let id = Uuid::from_u128(1);
        let mut place = Some(CurrentRequest::of(id));
        {
            let _inner = exchange(&mut place);
            assert_eq!(current(), Some(id));
            assert!(current_waits().is_none() && current_trace().is_none());
        }
        assert_eq!((current(), place.map(|request| request.id)), (None, Some(id)));
    }
}
