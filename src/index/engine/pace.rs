//! What reading one view has cost: it bounds an answer, and lets other tasks of the thread have
//! their turn.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::env::Clock;

/// Rows looked at between two turns of other tasks. Scans take turns of their own while they run;
/// this is for the sum of many short ones.
const TURN_ROWS: usize = 1_024;
/// Rows that one answer may look at.
pub(crate) const ANSWER_ROWS_MAX: usize = 65_536;
/// Rows that one answer may look at whatever time it takes: a full page of a list never ends early
/// on a slow machine.
const ANSWER_ROWS_MIN: usize = 16_384;
/// How long an answer may look at more rows than that.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(40);

/// The cost of one view so far.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Without one, time does not count.
    clock: Option<Arc<dyn Clock>>,
    began: OnceLock<Duration>,
    seen: AtomicUsize,
    /// Since the last turn of other tasks.
    turn: AtomicUsize,
    /// Rows after which nothing more is read.
    limit: Option<usize>,
}

impl Pace {
    /// Of a view not yet read.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Some(Arc::clone(clock)), ..Self::default() }
    }

    /// The same, and nothing is read after `limit` rows.
    pub(crate) fn limited(clock: &Arc<dyn Clock>, limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::new(clock) }
    }

    /// Whether nothing more is read.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.seen() > limit)
    }

    /// As [`Self::take`], of rows whose values take as long as so many `more`. These count in a
    /// limit; how much an answer holds is bounded by its bytes already.
    pub(crate) async fn take_long(&self, rows: usize, more: usize) {
        if self.limit.is_some() {
            return self.take(rows + more).await;
        }
        self.turn.fetch_add(more, Ordering::Relaxed);
        self.take(rows).await;
    }

    /// Notes that so many rows were looked at. Gives other tasks their turn when it is time.
    pub(crate) async fn take(&self, rows: usize) {
        if let (Some(clock), true) = (&self.clock, rows > 1) {
            self.began.get_or_init(|| clock.monotonic());
        }
        self.seen.fetch_add(rows, Ordering::Relaxed);
        if self.turn.fetch_add(rows, Ordering::Relaxed) + rows >= TURN_ROWS {
            self.turn.store(0, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// Rows looked at.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Whether that is as much as one answer may.
    pub(crate) fn is_spent(&self) -> bool {
        let seen = self.seen();
        if seen < ANSWER_ROWS_MIN {
            return false;
        }
        let took = match (&self.clock, self.began.get()) {
            (Some(clock), Some(began)) => clock.monotonic().saturating_sub(*began),
            (Some(_) | None, _) => Duration::ZERO,
        };
        seen >= ANSWER_ROWS_MAX || took >= ANSWER_TIME_MAX
    }
}
