//! The state that the connections of one workload share: its pace, its next number, its counts.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Clock;

use super::data::Pool;
use super::tally::Tally;
use super::workload::Kind;
use super::workload::Workload;

/// A workload of counted operations ends after more failures than this.
const ENOUGH_ERRORS: u64 = 50;

/// When a workload ends, and its rate.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// It ends after this time, in place of its number of operations.
    pub time: Option<Duration>,
    /// It does not end after its number of operations.
    pub endless: bool,
    /// It ends when this is cancelled.
    pub stop: CancellationToken,
    /// Operations that begin per second over all connections, even if earlier ones have not ended.
    pub rate: Option<f64>,
    /// Whether figures are kept for each second.
    pub each_second: bool,
}

/// The state that the connections of one workload share.
#[derive(Debug)]
pub struct Shared {
    /// The workload.
    pub workload: Workload,
    /// Bodies.
    pub pool: Rc<Pool>,
    /// Blobs of `mixed` that can be deleted.
    pub deletable: RefCell<VecDeque<u64>>,
    /// When it ends, and how fast it goes.
    pub pace: Pace,
    /// The number of the next operation.
    pub next: Cell<u64>,
    /// When the first one began, by the monotonic clock.
    pub begun: Duration,
    /// The counts.
    pub tally: RefCell<Tally>,
    /// Operations that ended so far, for a progress display.
    pub ended: Rc<Cell<u64>>,
    /// Prints a failure.
    pub report: fn(&str),
}

impl Pace {
    /// A number of operations, each begun when the last one was answered.
    #[must_use]
    pub fn counted(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Whether the workload ends at a time or a signal, not after a number of operations.
    fn is_open(&self) -> bool {
        self.time.is_some() || self.endless
    }

    /// Whether the workload must end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits for this time, or until the workload must end.
    pub(super) async fn rest(&self, clock: &dyn Clock, time: Duration) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = clock.sleep(time) => {}
        }
    }
}

impl Shared {
    /// The number of the next operation at this time, if there is one.
    pub(super) fn take(&self, now: Duration) -> Option<u64> {
        let number = self.next.get();
        let ended = match self.pace.time {
            Some(time) => now.saturating_sub(self.begun) >= time,
            None => !self.pace.endless && number >= self.workload.ops,
        };
        // An audit continues after failures, because their number is its result.
        let bears = self.pace.is_open() || matches!(self.workload.kind, Kind::Audit(_));
        let is_hopeless = !bears && self.tally.borrow().errors > ENOUGH_ERRORS;
        if ended || is_hopeless || self.pace.is_stopped() {
            return None;
        }
        self.next.set(number + 1);
        Some(number)
    }

    /// When operation `turn` of connection `place` is due. Operations of all connections are evenly
    /// spread over time.
    pub(super) fn due(&self, place: usize, turn: u32) -> Option<Duration> {
        let round = Duration::from_secs_f64(self.workload.concurrency as f64 / self.pace.rate?);
        let offset = round.mul_f64(place as f64 / self.workload.concurrency as f64);
        Some(self.begun + offset + round * turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;

    #[tokio::test(start_paused = true)]
    async fn a_workload_that_must_stop_rests_no_longer() {
        let (clock, pace) = (SimClock::new(), Pace::default());
        let seconds = Duration::from_secs;
        pace.rest(&clock, seconds(3)).await;
        assert_eq!(clock.monotonic(), seconds(3));
        let stopping = async {
            clock.sleep(seconds(1)).await;
            pace.stop.cancel();
        };
        tokio::join!(pace.rest(&clock, seconds(1_000)), stopping);
        assert_eq!(clock.monotonic(), seconds(4));
        assert!(pace.is_stopped());
    }
}
