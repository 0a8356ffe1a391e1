//! The minimum rate of a copy source on another server.

use std::time::Duration;

/// The waiting time after which the rate is checked.
const WINDOW: Duration = Duration::from_secs(60);

/// Enforces a minimum rate on a copy source. Only time spent waiting for the source counts; the
/// time this server needs to store the bytes does not.
#[derive(Debug)]
pub(crate) struct MinimumRate {
    /// The minimum in bytes per second; 0 means none.
    least: u64,
    waited: Duration,
    bytes: u64,
}

impl MinimumRate {
    /// A minimum of `least` bytes per second; 0 means none.
    pub(crate) const fn at_least(least: u64) -> Self {
        Self { least, waited: Duration::ZERO, bytes: 0 }
    }

    /// Counts a piece and the time spent waiting for it. Returns whether the source is fast enough.
    pub(crate) fn received(&mut self, bytes: u64, waited: Duration) -> bool {
        self.waited += waited;
        self.bytes += bytes;
        if self.waited < WINDOW {
            return true;
        }
        let wanted = u128::from(self.least) * self.waited.as_millis() / 1000;
        let enough = u128::from(self.bytes) >= wanted;
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn trickle_is_cut_within_a_minute_of_waiting() {
        let mut pace = MinimumRate::at_least(1024);
        let cut = (1..).find(|_| !pace.received(100, SECOND)).unwrap();
        assert_eq!(cut, 60);
        let mut enough = MinimumRate::at_least(1024);
        assert!((0..1000).all(|_| enough.received(1024, SECOND)));
        let mut burst = MinimumRate::at_least(1024);
        assert!(burst.received(1 << 30, SECOND));
        let cut = (1..).find(|_| !burst.received(100, SECOND)).unwrap();
        assert_eq!(cut, 59 + 60, "a fast minute does not pay for the slow one behind it");
    }

    #[test]
    fn own_slowness_does_not_count_and_zero_is_no_minimum() {
        let mut stored_slowly = MinimumRate::at_least(1024);
        assert!((0..100_000).all(|_| stored_slowly.received(1, Duration::ZERO)));
        let mut any = MinimumRate::at_least(0);
        assert!((0..100_000).all(|_| any.received(1, SECOND)));
    }
}
