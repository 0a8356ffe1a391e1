//! Times in ticks of 100 nanoseconds, as in Azure.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Ticks of 100 ns since 0001-01-01T00:00:00Z, the unit of Azure's `ETag` values and snapshot ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

/// Ticks between 0001-01-01 and 1970-01-01.
const UNIX_TICKS: u64 = 621_355_968_000_000_000;
const TICKS_PER_SECOND: u64 = 10_000_000;
/// 9999-12-31T23:59:59Z. Years of HTTP dates have four digits.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

impl Timestamp {
    /// The earliest time. A new store begins with it.
    pub const ZERO: Self = Self(0);

    /// A time of ticks that were read from disk.
    #[must_use]
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since 0001-01-01, for encoding.
    #[must_use]
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// The time at this distance from 1970-01-01.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self(UNIX_TICKS.saturating_add(ticks_of(since_epoch)))
    }

    /// Distance from 1970-01-01; zero for earlier times.
    #[must_use]
    pub fn since_unix(self) -> Duration {
        duration_of(self.0.saturating_sub(UNIX_TICKS))
    }

    /// The same instant for `httpdate` and the file system, at most the end of the year 9999.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + self.since_unix().min(LAST_DATE)
    }

    /// This time without the fraction of a second. Dates in HTTP headers have no fraction, and
    /// conditions compare whole seconds.
    #[must_use]
    pub const fn whole_seconds(self) -> Self {
        Self(self.0 - self.0 % TICKS_PER_SECOND)
    }

    /// This time, rounded up to a whole second.
    #[must_use]
    pub const fn seconds_up(self) -> Self {
        Self(self.0.saturating_add(TICKS_PER_SECOND - 1)).whole_seconds()
    }

    /// The next representable instant.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// This time plus `d`, at most the last time.
    #[must_use]
    pub fn plus(self, d: Duration) -> Self {
        Self(self.0.saturating_add(ticks_of(d)))
    }

    /// This time minus `d`; `None` if that is before the first time.
    #[must_use]
    pub fn minus(self, d: Duration) -> Option<Self> {
        self.0.checked_sub(ticks_of(d)).map(Self)
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        duration_of(self.0.saturating_sub(earlier.0))
    }
}

fn ticks_of(d: Duration) -> u64 {
    let fraction = u64::from(d.subsec_nanos()) / 100;
    d.as_secs().saturating_mul(TICKS_PER_SECOND).saturating_add(fraction)
}

fn duration_of(ticks: u64) -> Duration {
    let nanos = u32::try_from(ticks % TICKS_PER_SECOND).expect("below ten million") * 100;
    Duration::new(ticks / TICKS_PER_SECOND, nanos)
}

impl fmt::Display for Timestamp {
    /// RFC 1123, as in HTTP headers and XML lists.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", httpdate::HttpDate::from(self.to_system_time()))
    }
}

#[cfg(test)]
mod tests;
