//! The pending copies that this process carries out: places, pauses and progress. The rows are the
//! truth; this is lost with the process (ADR 0017).

mod turns;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::frontend::copies::turns::Turns;
use crate::index::BlobRecord;
use crate::index::CopyStatus;
use crate::types::AccountId;

/// How long after a refusal that will pass, such as a full queue, it is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// How long a copy whose end was not committed rests at most: each time its whole source is read.
const AGAIN_MAX: Duration = Duration::from_secs(64);
/// How long after its rest a copy is remembered that was not taken up again.
const FORGET: Duration = Duration::from_secs(3_600);
/// Copies that are remembered for having panicked. With more, all begin anew with their panics.
const PANICKED_MAX: usize = 1_024;

/// The copies this process carries out.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// A copy may begin.
    pub(super) wake: Notify,
    in_hand: Mutex<InHand>,
    /// One panicked and is not to begin anew at once.
    pub(super) panicked: AtomicBool,
}

#[derive(Debug, Default)]
struct InHand {
    running: HashMap<Uuid, Arc<Running>>,
    turns: Turns,
    /// Those whose end was not committed, until it is or they have been forgotten.
    resting: HashMap<Uuid, Rest>,
    /// How often copies have panicked whose end was not committed.
    panics: HashMap<Uuid, u32>,
}

/// The pause of a copy that is to begin anew; `until` is by the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Rest {
    pause: Duration,
    until: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Running {
    /// Bytes copied so far.
    pub(super) copied: Arc<AtomicU64>,
    /// Ends it.
    pub(super) abort: CancellationToken,
}

impl Copies {
    /// A work row was committed.
    pub(super) fn begun(&self) {
        self.wake.notify_one();
    }

    /// Brings the progress of a pending copy up to now.
    pub(crate) fn tell(&self, record: &mut BlobRecord) {
        let Some(copy) = record.copy.as_mut().filter(|c| c.status == CopyStatus::Pending) else {
            return;
        };
        if let Some(running) = self.in_hand().running.get(&copy.id) {
            copy.copied = running.copied.load(Ordering::Relaxed).min(copy.total);
        }
    }

    /// Notes a copy of an account to carry out; `None` when it is being carried out or rests, or
    /// the account has its share.
    pub(super) fn take_up(
        self: &Arc<Self>,
        (id, account): (Uuid, AccountId),
        now: Duration,
    ) -> Option<Place> {
        let mut in_hand = self.in_hand();
        if in_hand.resting.get(&id).is_some_and(|rest| now < rest.until) {
            return None;
        }
        if in_hand.running.contains_key(&id) || !in_hand.turns.take(account) {
            return None;
        }
        let one = Arc::new(Running::default());
        in_hand.running.insert(id, Arc::clone(&one));
        let panics = in_hand.panics.get(&id).copied().unwrap_or(0);
        Some(Place { of: Arc::clone(self), id, account, running: one, panics })
    }

    /// A copy's end was not committed: how long it rests before its source is read again.
    pub(super) fn rest(&self, id: Uuid, now: Duration) -> Duration {
        let mut in_hand = self.in_hand();
        // Of a copy that went with its container nobody hears again.
        in_hand.resting.retain(|_, rest| now < rest.until + FORGET);
        let last = in_hand.resting.get(&id).map(|rest| rest.pause);
        let pause = last.map_or(AGAIN, |last| (last * 2).min(AGAIN_MAX));
        in_hand.resting.insert(id, Rest { pause, until: now + pause });
        pause
    }

    /// A copy's end was committed.
    pub(super) fn settled(&self, id: Uuid) {
        let mut in_hand = self.in_hand();
        in_hand.resting.remove(&id);
        in_hand.panics.remove(&id);
    }

    fn panicked(&self, id: Uuid) {
        self.panicked.store(true, Ordering::Relaxed);
        let panics = &mut self.in_hand().panics;
        if panics.len() >= PANICKED_MAX {
            panics.clear();
        }
        *panics.entry(id).or_default() += 1;
    }

    fn forget(&self, id: Uuid, account: AccountId) {
        let mut in_hand = self.in_hand();
        if in_hand.running.remove(&id).is_some() {
            in_hand.turns.give_back(account);
        }
        drop(in_hand);
        self.wake.notify_one();
    }

    pub(super) fn abort(&self, id: Uuid) {
        let mut in_hand = self.in_hand();
        in_hand.resting.remove(&id);
        in_hand.panics.remove(&id);
        if let Some(running) = in_hand.running.get(&id) {
            running.abort.cancel();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.in_hand().turns.is_full()
    }

    fn in_hand(&self) -> MutexGuard<'_, InHand> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy's place among those in hand. It is given back when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Place {
    of: Arc<Copies>,
    pub(super) id: Uuid,
    account: AccountId,
    pub(super) running: Arc<Running>,
    /// How often the copy has panicked.
    pub(super) panics: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.of.panicked(self.id);
        }
        self.of.forget(self.id, self.account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Tasks;

    #[tokio::test]
    async fn copy_that_panics_gives_its_place_back() {
        let copies = Arc::new(Copies::default());
        let (id, account) = (Uuid::from_u128(7), AccountId::new(1));
        let now = Duration::ZERO;
        let place = copies.take_up((id, account), now).unwrap();
        assert!(copies.take_up((id, account), now).is_none(), "it is in hand");
        let task = Tasks::new().spawn("copy", async move {
            let _place = place;
            panic!("as told");
        });
        let ended: Result<(), _> = task.await;
        assert!(ended.is_err());
        assert!(copies.panicked.load(Ordering::Relaxed), "it is not begun anew at once");
        let again = copies.take_up((id, account), now);
        assert_eq!(again.map(|place| place.panics), Some(1), "its place is free again");
        copies.wake.notified().await;
    }

    #[tokio::test]
    async fn copy_whose_end_is_not_committed_rests_longer_each_time() {
        let copies = Arc::new(Copies::default());
        let one = (Uuid::from_u128(7), AccountId::new(1));
        let other = (Uuid::from_u128(8), AccountId::new(1));
        let mut now = Duration::from_secs(1_000);
        for wanted in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
            drop(copies.take_up(one, now).unwrap());
            let pause = copies.rest(one.0, now);
            assert_eq!(pause, Duration::from_secs(wanted));
            let early = now + pause - Duration::from_millis(1);
            assert!(copies.take_up(one, early).is_none(), "its source is not read meanwhile");
            assert!(copies.take_up(other, early).is_some(), "other copies of the account run");
            now += pause;
        }
        copies.settled(one.0);
        assert_eq!(copies.rest(one.0, now), Duration::from_secs(1), "that was another trouble");
        copies.abort(one.0);
        assert!(copies.in_hand().resting.is_empty(), "an aborted copy is forgotten");
        let far = now + Duration::from_secs(1_000_000);
        copies.rest(one.0, now);
        copies.rest(other.0, far);
        assert_eq!(copies.in_hand().resting.len(), 1, "one that nobody took up again is forgotten");
    }
}
