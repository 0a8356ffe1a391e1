//! The request that a thread works on: its id, the trace of its client, and where it waited.
//!
//! Log lines read the ids from here. A span of `tracing` would cost every request allocations and
//! locks, although few requests are logged.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
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
    /// The times that it waited in each stage, while they are recorded.
    pub waits: Option<Arc<StageWaits>>,
    /// Whether it has a span.
    pub sampling: Sampling,
}

/// Whether a request has a span. Its sender is not known yet when it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// If its sender is authenticated and it was admitted: its client's word counts.
    pub of_known: bool,
    /// If not: only the ratio counts.
    pub of_others: bool,
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

/// How long a request has waited in each stage. Its parts, which are tasks, share this. Times are
/// of the monotonic clock.
#[derive(Debug, Default)]
pub struct StageWaits(Mutex<[StageWait; 3]>);

/// The waits of one stage.
#[derive(Clone, Copy, Debug, Default)]
struct StageWait {
    /// Of those that ended, together.
    ended: Duration,
    /// Those that have not ended.
    running: u32,
    /// When these began, added up.
    begun: Duration,
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
        let sampling = Sampling { of_known: false, of_others: false };
        Self { id, trace: None, waits: None, sampling }
    }
}

impl StageWaits {
    /// A wait begins.
    pub fn begin(&self, stage: Stage, now: Duration) {
        let mut all = self.all();
        let of = stage.of(&mut all);
        of.running += 1;
        of.begun += now;
    }

    /// A wait that began at `begun` ends.
    pub fn end(&self, stage: Stage, begun: Duration, now: Duration) {
        let mut all = self.all();
        let of = stage.of(&mut all);
        of.running = of.running.saturating_sub(1);
        of.begun = of.begun.saturating_sub(begun);
        of.ended += now.saturating_sub(begun);
    }

    /// The waits so far, those that have not ended included: the client may leave meanwhile.
    #[must_use]
    pub fn times(&self, now: Duration) -> StageTimes {
        let [index, journal, read] = self.all().map(|of| of.so_far(now));
        StageTimes { index, journal, read }
    }

    fn all(&self) -> MutexGuard<'_, [StageWait; 3]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StageWait {
    fn so_far(self, now: Duration) -> Duration {
        self.ended + (now * self.running).saturating_sub(self.begun)
    }
}

impl Stage {
    const fn of(self, all: &mut [StageWait; 3]) -> &mut StageWait {
        let [index, journal, read] = all;
        match self {
            Self::Index => index,
            Self::Journal => journal,
            Self::Read => read,
        }
    }
}

impl Sampling {
    /// Whether it may have a span.
    #[must_use]
    pub const fn is_possible(self) -> bool {
        self.of_known || self.of_others
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

/// The waits of the request that this thread works on, if they are recorded.
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
        let at = Duration::from_millis;
        for (stage, milliseconds) in
            [(Stage::Index, 1), (Stage::Journal, 20), (Stage::Index, 2), (Stage::Read, 300)]
        {
            waits.begin(stage, at(5));
            waits.end(stage, at(5), at(5 + milliseconds));
        }
        let times = StageTimes { index: at(3), journal: at(20), read: at(300) };
        assert_eq!(waits.times(at(1_000)), times);
    }

    #[test]
    fn waits_that_have_not_ended_count_until_now() {
        let (waits, at) = (StageWaits::default(), Duration::from_millis);
        waits.begin(Stage::Index, at(10));
        waits.begin(Stage::Index, at(15));
        waits.begin(Stage::Read, at(18));
        waits.end(Stage::Index, at(10), at(12));
        let times = StageTimes { index: at(2 + 5), journal: at(0), read: at(2) };
        assert_eq!(waits.times(at(20)), times);
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
