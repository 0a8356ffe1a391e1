//! The pending copies that this process carries out: places, pauses and progress. Only the rows are
//! durable; this state is lost with the process (ADR 0017).

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

/// The pause after a temporary refusal, such as a full queue.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// The longest pause of a copy whose end was not committed: each attempt reads its whole source.
const AGAIN_MAX: Duration = Duration::from_secs(64);
/// A copy that was not started again is forgotten this time after its pause.
const FORGET: Duration = Duration::from_secs(3_600);
/// Copies whose panics are counted. With more, all counts begin again.
const PANICKED_MAX: usize = 1_024;

/// The copies this process carries out.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// A copy may begin.
    pub(super) wake: Notify,
    started: Mutex<Started>,
    /// A copy panicked, and pauses before it is tried again.
    pub(super) panicked: AtomicBool,
}

#[derive(Debug, Default)]
struct Started {
    running: HashMap<Uuid, Arc<Running>>,
    turns: Turns,
    /// Copies whose end was not committed, until it is or they are forgotten.
    paused: HashMap<Uuid, Pause>,
    /// The number of panics of copies whose end was not committed.
    panics: HashMap<Uuid, u32>,
}

/// The pause of a copy before it begins again; `until` is by the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
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

    /// Sets the bytes copied so far in the record of a pending copy.
    pub(crate) fn show_progress(&self, record: &mut BlobRecord) {
        let Some(copy) = record.copy.as_mut().filter(|c| c.status == CopyStatus::Pending) else {
            return;
        };
        if let Some(running) = self.started().running.get(&copy.id) {
            copy.copied = running.copied.load(Ordering::Relaxed).min(copy.total);
        }
    }

    /// Takes a place for a copy of an account; `None` when the copy runs or pauses, or the account
    /// has its share of the places.
    pub(super) fn take_up(
        self: &Arc<Self>,
        id: Uuid,
        account: AccountId,
        now: Duration,
    ) -> Option<Place> {
        let mut started = self.started();
        if started.paused.get(&id).is_some_and(|pause| now < pause.until) {
            return None;
        }
        if started.running.contains_key(&id) || !started.turns.take(account) {
            return None;
        }
        let one = Arc::new(Running::default());
        started.running.insert(id, Arc::clone(&one));
        let panics = started.panics.get(&id).copied().unwrap_or(0);
        Some(Place { of: Arc::clone(self), id, account, running: one, panics })
    }

    /// The pause of a copy whose end was not committed, before its source is read again.
    pub(super) fn pause(&self, id: Uuid, now: Duration) -> Duration {
        let mut started = self.started();
        // A copy that was deleted with its container does not come back.
        started.paused.retain(|_, pause| now < pause.until + FORGET);
        let last = started.paused.get(&id).map(|pause| pause.length);
        let length = last.map_or(AGAIN, |last| (last * 2).min(AGAIN_MAX));
        started.paused.insert(id, Pause { length, until: now + length });
        length
    }

    /// Another process carries out a copy: it is not looked at again for this time.
    pub(super) fn rest(&self, id: Uuid, now: Duration, length: Duration) {
        let until = now + length;
        self.started().paused.insert(id, Pause { length: AGAIN, until });
    }

    /// Whether this process carries out a copy.
    pub(super) fn is_running(&self, id: Uuid) -> bool {
        self.started().running.contains_key(&id)
    }

    /// A copy's end was committed.
    pub(super) fn settled(&self, id: Uuid) {
        let mut started = self.started();
        started.paused.remove(&id);
        started.panics.remove(&id);
    }

    fn panicked(&self, id: Uuid) {
        self.panicked.store(true, Ordering::Relaxed);
        let panics = &mut self.started().panics;
        if panics.len() >= PANICKED_MAX {
            panics.clear();
        }
        *panics.entry(id).or_default() += 1;
    }

    fn forget(&self, id: Uuid, account: AccountId) {
        let mut started = self.started();
        if started.running.remove(&id).is_some() {
            started.turns.give_back(account);
        }
        drop(started);
        self.wake.notify_one();
    }

    pub(super) fn abort(&self, id: Uuid) {
        let mut started = self.started();
        started.paused.remove(&id);
        started.panics.remove(&id);
        if let Some(running) = started.running.get(&id) {
            running.abort.cancel();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.started().turns.is_full()
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a running copy. It is given back when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Place {
    of: Arc<Copies>,
    pub(super) id: Uuid,
    account: AccountId,
    pub(super) running: Arc<Running>,
    /// The number of panics of the copy so far.
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
        let place = copies.take_up(id, account, now).unwrap();
        assert!(copies.take_up(id, account, now).is_none(), "it is in hand");
        let task = Tasks::new().spawn("copy", async move {
            let _place = place;
            panic!("as planned");
        });
        let ended: Result<(), _> = task.await;
        assert!(ended.is_err());
        assert!(copies.panicked.load(Ordering::Relaxed), "it is not begun anew at once");
        let again = copies.take_up(id, account, now);
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
            drop(copies.take_up(one.0, one.1, now).unwrap());
            let pause = copies.pause(one.0, now);
            assert_eq!(pause, Duration::from_secs(wanted));
            let early = now + pause - Duration::from_millis(1);
            assert!(
                copies.take_up(one.0, one.1, early).is_none(),
                "its source is not read meanwhile"
            );
            assert!(
                copies.take_up(other.0, other.1, early).is_some(),
                "other copies of the account run"
            );
            now += pause;
        }
        copies.settled(one.0);
        assert_eq!(copies.pause(one.0, now), Duration::from_secs(1), "that was another trouble");
        copies.abort(one.0);
        assert!(copies.started().paused.is_empty(), "an aborted copy is forgotten");
        let far = now + Duration::from_secs(1_000_000);
        copies.pause(one.0, now);
        copies.pause(other.0, far);
        assert_eq!(copies.started().paused.len(), 1, "one that nobody took up again is forgotten");
    }
}
