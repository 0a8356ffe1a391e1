//! Limits the rows that one list request scans.

use std::time::Duration;

use crate::env::Clock;

/// The most rows that one request scans, in all partitions; see also [`Effort`].
const ROWS_MAX: usize = 65_536;
/// A request may scan this many rows however long it takes, so that full pages do not end early on
/// a slow machine.
const ROWS_MIN: usize = 16_384;
/// How long a request may scan more rows than that.
const TIME_MAX: Duration = Duration::from_millis(40);

/// The cost of a page so far. If millions of names were deleted, a page ends early, perhaps without
/// any entry, but with a marker: clients then request the next page.
pub(crate) struct Effort<'a> {
    clock: &'a dyn Clock,
    began: Duration,
    seen: usize,
}

impl<'a> Effort<'a> {
    /// Nothing so far.
    pub(crate) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, began: clock.monotonic(), seen: 0 }
    }

    /// Adds scanned rows, and returns whether the page must end.
    pub(crate) fn is_enough(&mut self, seen: usize) -> bool {
        self.seen = self.seen.saturating_add(seen);
        let late = || self.clock.monotonic().saturating_sub(self.began) >= TIME_MAX;
        self.seen >= ROWS_MAX || self.seen >= ROWS_MIN && late()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;

    #[tokio::test(start_paused = true)]
    async fn page_ends_at_many_rows_or_at_some_rows_and_some_time() {
        let clock = SimClock::new();
        let mut fast = Effort::new(&clock);
        assert!(!fast.is_enough(ROWS_MIN));
        assert!(!fast.is_enough(ROWS_MAX - ROWS_MIN - 1));
        assert!(fast.is_enough(1), "it is fast, but looks at many rows");

        let mut slow = Effort::new(&clock);
        clock.sleep(TIME_MAX * 100).await;
        assert!(!slow.is_enough(ROWS_MIN - 1), "it is slow, but full pages do not end early");
        assert!(slow.is_enough(1));

        let mut both = Effort::new(&clock);
        assert!(!both.is_enough(ROWS_MIN));
        clock.sleep(TIME_MAX - Duration::from_millis(1)).await;
        assert!(!both.is_enough(1));
        clock.sleep(Duration::from_millis(1)).await;
        assert!(both.is_enough(0));
    }
}
