//! A partition's load averaged over so long that it can be told from chance.

use std::time::Duration;

use crate::manager::policy::config::TICK;

/// Seconds that loads are averaged over, at least.
const OVER_MIN: f64 = 4.0;
/// Seconds that loads are averaged over, at most.
const OVER_MAX: f64 = 60.0;
/// Requests that are enough to know a load to about 7 %: with fewer it is averaged over longer.
const ENOUGH: f64 = 200.0;

/// An average, first of all ticks, then with the older ones counting less and less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    weight: f64,
    /// A second.
    requests: f64,
    /// Seconds.
    over: f64,
    looked: Option<Duration>,
}

impl Average {
    /// Of nothing yet.
    pub(super) const NONE: Self = Self { weight: 0.0, requests: 0.0, over: 0.0, looked: None };

    /// Adds what a tick has shown.
    pub(super) fn add(&mut self, now: Duration, weight: f64, requests: f64) {
        let since = self.looked.map_or(TICK, |at| now.saturating_sub(at)).as_secs_f64();
        if since <= 0.0 {
            return;
        }
        self.looked = Some(now);
        let longest = (ENOUGH / self.requests.max(f64::MIN_POSITIVE)).clamp(OVER_MIN, OVER_MAX);
        self.over = (self.over + since).min(longest).max(since);
        let share = since / self.over;
        self.weight += (weight - self.weight) * share;
        self.requests += (requests - self.requests) * share;
    }

    /// The average weight.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// How far off it may be, squared: requests come by chance, so a load of `n` of them is known
    /// to one part in the root of `n`.
    pub(super) fn variance(&self) -> f64 {
        self.weight * self.weight / (self.requests * self.over).max(1.0)
    }
}
