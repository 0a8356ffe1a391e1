//! The counts of a partition, and their rates a second.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

/// The counts of a partition since it was opened here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Lookups of one account, container or blob.
    pub reads: u64,
    /// Writes that arrived, with refused and waiting ones.
    pub writes: u64,
    /// Pages of names, and steps of walks over rows.
    pub lists: u64,
    /// Writes refused because too many waited, or because they waited for too long.
    pub refused: u64,
    /// Bytes of log records made durable.
    pub log_bytes: u64,
    /// Processor time of commits and reads.
    pub cpu: Duration,
}

impl Counts {
    /// Requests of all classes.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.lists)
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            lists: self.lists.saturating_add(other.lists),
            refused: self.refused.saturating_add(other.refused),
            log_bytes: self.log_bytes.saturating_add(other.log_bytes),
            cpu: self.cpu.saturating_add(other.cpu),
        }
    }

    /// The counts since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            lists: self.lists.saturating_sub(earlier.lists),
            refused: self.refused.saturating_sub(earlier.refused),
            log_bytes: self.log_bytes.saturating_sub(earlier.log_bytes),
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }
}

/// The load of a partition in one tick. Rates are per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Lookups of one account, container or blob.
    pub reads: f64,
    /// Writes that arrived.
    pub writes: f64,
    /// Pages of names, and steps of walks over rows.
    pub lists: f64,
    /// Writes refused because too many waited, or because they waited for too long.
    pub refused: f64,
    /// Bytes of log records made durable.
    pub log_bytes: f64,
    /// The share of one processor that commits and reads took.
    pub cpu: f64,
    /// The longest wait of a write behind others. The commit that was in progress when the write
    /// arrived does not count, because no split makes a disk faster.
    pub queue_age: Duration,
}

impl Load {
    /// The rates of `added` within `elapsed`; zero if no time has passed.
    #[must_use]
    pub fn of(added: &Counts, elapsed: Duration, queue_age: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return Self { queue_age, ..Self::default() };
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of an eighth of a second")]
        let rate = |count: u64| count as f64 / seconds;
        Self {
            reads: rate(added.reads),
            writes: rate(added.writes),
            lists: rate(added.lists),
            refused: rate(added.refused),
            log_bytes: rate(added.log_bytes),
            cpu: added.cpu.as_secs_f64() / seconds,
            queue_age,
        }
    }

    /// Requests of all classes.
    #[must_use]
    pub const fn requests(&self) -> f64 {
        self.reads + self.writes + self.lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_was_added_by_the_time_it_took() {
        let cpu = Duration::from_millis(100);
        let first = Counts { reads: 5, writes: 1, lists: 2, refused: 1, log_bytes: 10, cpu };
        let second = Counts {
            reads: 105,
            writes: 51,
            lists: 3,
            refused: 3,
            log_bytes: 1_010,
            cpu: Duration::from_millis(200),
        };
        assert_eq!(second.since(&first).plus(&first), second);
        let age = Duration::from_millis(3);
        let load = Load::of(&second.since(&first), Duration::from_millis(250), age);
        let expected = Load {
            reads: 400.0,
            writes: 200.0,
            lists: 4.0,
            refused: 8.0,
            log_bytes: 4_000.0,
            cpu: 0.4,
            queue_age: age,
        };
        assert_eq!(load, expected);
        assert_eq!((load.requests(), second.requests()), (604.0, 159));
        let nothing = Load::of(&second, Duration::ZERO, age);
        assert_eq!(nothing, Load { queue_age: age, ..Load::default() });
    }
}
