//! Counts the cost of the reads of one view. It bounds an answer, and yields to other tasks of the
//! thread.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::env::Clock;

/// Rows examined before the task yields. A long scan yields by itself; this is for the sum of many
/// short reads.
const TURN_ROWS: usize = 1_024;
/// The most rows that one answer may examine.
pub(crate) const ANSWER_ROWS_MAX: usize = 65_536;
/// Rows that one answer may examine however long it takes, so that a full page of a list does not
/// end early on a slow machine.
const ANSWER_ROWS_MIN: usize = 16_384;
/// How long an answer may examine more rows than that.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(40);

/// The cost of one view so far.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Without a clock, time is not limited.
    clock: Option<Arc<dyn Clock>>,
    began: OnceLock<Duration>,
    seen: AtomicUsize,
    /// Rows examined since the task last yielded.
    turn: AtomicUsize,
    /// The number of rows after which reading stops.
    limit: Option<usize>,
}

impl Pace {
    /// The cost of a view that was not read yet.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Some(Arc::clone(clock)), ..Self::default() }
    }

    /// As [`Self::new`], and nothing is read after `limit` rows.
    pub(crate) fn limited(clock: &Arc<dyn Clock>, limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::new(clock) }
    }

    /// Whether the limit is reached, so that nothing more is read.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.seen() > limit)
    }

    /// As [`Self::take`], for rows with long values that cost as much as `more` further rows. The
    /// further rows count against a limit, but not against the rows that an answer may examine: an
    /// answer is already bounded by its bytes.
    pub(crate) async fn take_long(&self, rows: usize, more: usize) {
        if self.limit.is_some() {
            return self.take(rows + more).await;
        }
        self.turn.fetch_add(more, Ordering::Relaxed);
        self.take(rows).await;
    }

    /// Notes that `rows` rows were examined. Yields to other tasks if the task has examined many
    /// rows.
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

    /// The number of rows examined.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Whether the view has examined as many rows as one answer may.
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
