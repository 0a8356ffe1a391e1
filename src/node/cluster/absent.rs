//! Since when something has been absent.

use std::collections::BTreeMap;
use std::time::Duration;

/// A writer that has had no session for so long is dead, for those who settle what it left open.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Since when these have been absent, as far as this node knows.
#[derive(Debug)]
pub(super) struct Absent<T>(BTreeMap<T, Duration>);

impl<T> Default for Absent<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Absent<T> {
    /// Sets which are absent now.
    pub(super) fn set(&mut self, absent: impl Iterator<Item = T>, now: Duration) {
        let mut before = std::mem::take(&mut self.0);
        self.0 = absent
            .map(|one| {
                let since = before.remove(&one).unwrap_or(now);
                (one, since)
            })
            .collect();
    }

    /// Notes that one is absent, and returns whether it has been for so long.
    pub(super) fn note(&mut self, one: T, longer: Duration, now: Duration) -> bool {
        now >= *self.0.entry(one).or_insert(now) + longer
    }

    /// Forgets one, which is there.
    pub(super) fn forget(&mut self, one: &T) {
        self.0.remove(one);
    }

    /// Whether one has been absent for so long.
    pub(super) fn is_longer(&self, one: &T, longer: Duration, now: Duration) -> bool {
        self.0.get(one).is_some_and(|since| now >= *since + longer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_begins_anew_after_a_return() {
        let (mut absent, at) = (Absent::default(), Duration::from_secs);
        absent.set([1, 2].into_iter(), at(10));
        assert!(!absent.is_longer(&1, at(5), at(14)) && absent.is_longer(&1, at(5), at(15)));
        absent.set([2].into_iter(), at(15));
        absent.set([1, 2].into_iter(), at(16));
        assert!(!absent.is_longer(&1, at(5), at(17)) && absent.is_longer(&2, at(5), at(17)));
        assert!(!absent.is_longer(&3, at(0), at(17)));
        assert!(!absent.note(4, at(5), at(20)) && absent.note(4, at(5), at(25)));
        absent.forget(&4);
        assert!(!absent.note(4, at(5), at(26)));
    }
}
