//! How fast a source on another server has to be.

use std::time::Duration;

/// Waiting after which the rate is judged.
const WINDOW: Duration = Duration::from_secs(60);

/// Holds a source to a minimum rate. Only the time counts in which it was waited for: what this
/// server needs to store the bytes is not the source's fault.
#[derive(Debug)]
pub(crate) struct MinimumRate {
    /// Bytes a second; 0 is no minimum.
    least: u64,
    waited: Duration,
    came: u64,
}

impl MinimumRate {
    /// At least so many bytes a second; 0 for any.
    pub(crate) const fn at_least(least: u64) -> Self {
        Self { least, waited: Duration::ZERO, came: 0 }
    }

    /// Counts a piece and how long it was waited for; says whether the source is fast enough.
    pub(crate) fn came(&mut self, bytes: u64, waited: Duration) -> bool {
        self.waited += waited;
        self.came += bytes;
        if self.waited < WINDOW {
            return true;
        }
        let wanted = u128::from(self.least) * self.waited.as_millis() / 1000;
        let enough = u128::from(self.came) >= wanted;
        (self.waited, self.came) = (Duration::ZERO, 0);
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
        let cut = (1..).find(|_| !pace.came(100, SECOND)).unwrap();
        assert_eq!(cut, 60);
        let mut enough = MinimumRate::at_least(1024);
        assert!((0..1000).all(|_| enough.came(1024, SECOND)));
        let mut burst = MinimumRate::at_least(1024);
        assert!(burst.came(1 << 30, SECOND));
        let cut = (1..).find(|_| !burst.came(100, SECOND)).unwrap();
        assert_eq!(cut, 59 + 60, "a fast minute does not pay for the slow one behind it");
    }

    #[test]
    fn own_slowness_does_not_count_and_zero_is_no_minimum() {
        let mut stored_slowly = MinimumRate::at_least(1024);
        assert!((0..100_000).all(|_| stored_slowly.came(1, Duration::ZERO)));
        let mut any = MinimumRate::at_least(0);
        assert!((0..100_000).all(|_| any.came(1, SECOND)));
    }
}
