//! Damage that was found in the copies of this node. In a cluster it is mended from other copies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use tokio::sync::Notify;

use crate::env::Clock;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Places that are remembered. If there are more, the next scrub finds the others again.
const REMEMBERED_MAX: usize = 10_000;
/// When a place is tried again that could not be mended. It doubles with each try.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest pause between two tries.
const AGAIN_MAX: Duration = Duration::from_secs(3_600);

/// Where a copy is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Damage {
    /// The extent.
    pub extent: ExtentId,
    /// Where the damaged frame starts, or an earlier place where a frame starts or has ended. If
    /// the first page, the map or the file is damaged, all frames are.
    pub offset: ExtentOffset,
}

/// The damage that was not mended yet; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Damages(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    places: Mutex<BTreeMap<Damage, Try>>,
    news: Notify,
}

/// The next try to mend a place.
#[derive(Clone, Copy, Debug, Default)]
struct Try {
    /// Monotonic time.
    due: Duration,
    /// The tries before.
    failed: u32,
}

impl Damages {
    /// Notes damage. A place that is noted already is tried no earlier for that.
    pub fn note(&self, damage: Damage) {
        let mut places = self.lock();
        if places.len() < REMEMBERED_MAX && !places.contains_key(&damage) {
            places.insert(damage, Try::default());
            self.0.news.notify_one();
        }
    }

    /// Waits for the next place to be mended. It stays noted until [`Self::resolve`]. For one
    /// caller at a time.
    ///
    /// Cancel safe.
    pub async fn next(&self, clock: &dyn Clock) -> Damage {
        loop {
            let now = clock.monotonic();
            let first = self.first();
            if let Some((damage, _)) = first.filter(|(_, due)| *due <= now) {
                return damage;
            }
            let wait = first.map(|(_, due)| due.saturating_sub(now));
            tokio::select! {
                biased;
                () = self.0.news.notified() => {}
                () = clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// The place has been mended, or is none.
    pub fn resolve(&self, damage: Damage) {
        self.lock().remove(&damage);
    }

    /// The place could not be mended. Returns how often that was so before.
    pub fn put_off(&self, damage: Damage, clock: &dyn Clock) -> u32 {
        let mut places = self.lock();
        let next = places.entry(damage).or_default();
        let pause = AGAIN.saturating_mul(1 << next.failed.min(10)).min(AGAIN_MAX);
        next.due = clock.monotonic() + pause;
        next.failed += 1;
        next.failed - 1
    }

    /// The place that is due first.
    fn first(&self) -> Option<(Damage, Duration)> {
        let places = self.lock();
        let first = places.iter().min_by_key(|(_, next)| next.due);
        first.map(|(damage, next)| (*damage, next.due))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Damage, Try>> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;

    #[tokio::test(start_paused = true)]
    async fn damage_is_tried_until_it_is_mended_and_more_and_more_seldom() {
        let (damages, clock) = (Damages::default(), SimClock::new());
        let damage =
            |offset| Damage { extent: ExtentId::new(1), offset: ExtentOffset::new(offset) };
        let mut waiting = Box::pin(damages.next(&clock));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        for offset in [7, 3, 7] {
            damages.note(damage(offset));
        }
        assert_eq!(waiting.await, damage(3));
        damages.resolve(damage(3));
        assert_eq!(damages.next(&clock).await, damage(7));
        for pause in [60, 120, 240] {
            let began = clock.monotonic();
            damages.put_off(damage(7), &clock);
            // Who finds it again hurries nobody.
            damages.note(damage(7));
            assert_eq!(damages.next(&clock).await, damage(7));
            assert_eq!((clock.monotonic() - began).as_secs(), pause);
        }
        (0..30).for_each(|tried| assert_eq!(damages.put_off(damage(7), &clock), tried + 3));
        let began = clock.monotonic();
        damages.next(&clock).await;
        assert_eq!(clock.monotonic() - began, AGAIN_MAX);
        damages.resolve(damage(7));
        assert!(futures_util::poll!(Box::pin(damages.next(&clock))).is_pending());
        (0..20_000).for_each(|offset| damages.note(damage(offset)));
        assert_eq!(damages.lock().len(), REMEMBERED_MAX);
    }
}
