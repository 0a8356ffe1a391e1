//! Times of events, as far as a client knows them: commits choose their times, within bounds of the
//! clock.

use std::time::Duration;

use blockyard::types::Timestamp;

/// A time no earlier than `from` and no later than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl When {
    /// An exactly known time.
    pub(crate) const fn at(time: Timestamp) -> Self {
        Self { from: time, to: time }
    }

    /// Some time from then on.
    pub(crate) const fn since(from: Timestamp) -> Self {
        Self { from, to: Timestamp::from_ticks(u64::MAX) }
    }

    pub(crate) fn plus(self, by: Duration) -> Self {
        Self { from: self.from.plus(by), to: self.to.plus(by) }
    }

    /// The earlier of both.
    pub(crate) fn min(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.min(other.to) }
    }

    /// Whether it may be before `end`.
    pub(crate) fn may_precede(self, end: Self) -> bool {
        self.from < end.to
    }

    /// Whether it may be at `end` or after it.
    pub(crate) fn may_follow(self, end: Self) -> bool {
        self.to >= end.from
    }

    pub(crate) fn contains(self, time: Timestamp) -> bool {
        (self.from..=self.to).contains(&time)
    }
}
