//! The average load of a partition, over a time that is long enough to exclude chance.

use std::time::Duration;

use crate::manager::policy::config::TICK;

/// The shortest time of an average, seconds.
const OVER_MIN: f64 = 4.0;
/// The longest time of an average, seconds.
const OVER_MAX: f64 = 60.0;
/// This many requests determine a load to about 7 %. With fewer the time of the average is longer.
const ENOUGH: f64 = 200.0;

/// An average: at first of all ticks, later with decreasing weights for older ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    weight: f64,
    /// Requests a second.
    requests: f64,
    /// The time of the average, seconds.
    over: f64,
    looked: Option<Duration>,
}

impl Average {
    /// The average of no ticks.
    pub(super) const NONE: Self = Self { weight: 0.0, requests: 0.0, over: 0.0, looked: None };

    /// Adds the load of a tick.
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

    /// The variance of the average. Requests come at random, so the relative error of a load of `n`
    /// requests is one over the root of `n`.
    pub(super) fn variance(&self) -> f64 {
        self.weight * self.weight / (self.requests * self.over).max(1.0)
    }
}
