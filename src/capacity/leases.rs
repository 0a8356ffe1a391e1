//! Read leases: for how long the owner of a log may answer reads without asking anybody (ADR 0049,
//! ADR 0056). `tests/model/leases` walks the rules.
//!
//! A host asks every member of a log whether the log is fenced there. An answer that does not name
//! the log is a lease: the host may rely on it for [`LEASE`] from the sending of its question. A
//! new owner of the log waits until no earlier owner can rely on one: for [`LEASE_WAIT`] after the
//! last answer.
//!
//! This file has what both sides know, and the side of the member. `cluster/leases.rs` has the side
//! of the host.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;

use crate::capacity::OwnedLog;
use crate::env::Clock;
use crate::types::Epoch;
use crate::types::ExtentId;

/// How long a host relies on an answer, from the sending of its question.
pub const LEASE: Duration = Duration::from_secs(1);
/// How long a member counts an answer as relied on. The rates of two clocks may differ by 5 % each:
/// 1.05 / 0.95 is less than 1.2.
pub const LEASE_WAIT: Duration = Duration::from_millis(1200);

/// The leases of a host.
#[async_trait]
pub trait ReadLeases: Send + Sync + Debug {
    /// Whether every member of all these logs has given a lease that holds now. False without a
    /// log.
    fn are_held(&self, logs: &[OwnedLog]) -> bool;

    /// Asks every member of these logs for a lease. If this returns no log, no other owner had a
    /// lease, or served, when it was called.
    ///
    /// Returns the logs that are fenced at a member, and those of which a member did not answer
    /// within 250 ms.
    async fn ask(&self, logs: &[OwnedLog]) -> Vec<ExtentId>;

    /// Those of these logs that are better left: their groups are to be repaired, which has to wait
    /// while they are open.
    fn to_be_left(&self, logs: &[OwnedLog]) -> Vec<ExtentId>;

    /// Stops to rely on the leases of these logs for ever, and says so to the members: the next
    /// owner need not wait.
    async fn give_back(&self, logs: &[OwnedLog]);
}

/// The leases that a member has given since its start.
#[derive(Debug)]
pub(crate) struct GivenLeases {
    clock: Arc<dyn Clock>,
    /// What was given before is not known.
    started: Duration,
    given: Mutex<BTreeMap<ExtentId, Given>>,
}

/// The last lease of a log.
#[derive(Clone, Copy, Debug)]
struct Given {
    epoch: Epoch,
    /// [`Clock::boot_time`].
    at: Duration,
}

impl GivenLeases {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let started = clock.boot_time();
        Self { clock, started, given: Mutex::default() }
    }

    /// Notes that these leases are given. Call it before it is looked at whether the logs are
    /// fenced: a fence in between then waits for a lease that may be given.
    pub(crate) fn note(&self, logs: &[OwnedLog]) {
        let at = self.clock.boot_time();
        let mut given = self.lock();
        given.retain(|_, lease| at < lease.at + LEASE_WAIT);
        for OwnedLog { log, epoch } in logs {
            // A late question of an earlier epoch does not hide a later one.
            let before = given.get(log).map_or(*epoch, |lease| lease.epoch);
            given.insert(*log, Given { epoch: before.max(*epoch), at });
        }
    }

    /// The owner at this epoch does not rely on its leases any more.
    pub(crate) fn give_back(&self, logs: &[OwnedLog]) {
        let mut given = self.lock();
        for OwnedLog { log, epoch } in logs {
            if given.get(log).is_some_and(|lease| lease.epoch == *epoch) {
                given.remove(log);
            }
        }
    }

    /// For how long an owner may still rely on a lease of a log.
    pub(crate) fn left(&self, log: ExtentId) -> Duration {
        let last = self.lock().get(&log).map_or(self.started, |lease| lease.at.max(self.started));
        (last + LEASE_WAIT).saturating_sub(self.clock.boot_time())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ExtentId, Given>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;

    const LOG: ExtentId = ExtentId::new(7);

    fn owned(epoch: u64) -> [OwnedLog; 1] {
        [OwnedLog { log: LOG, epoch: Epoch::new(epoch) }]
    }

    #[tokio::test(start_paused = true)]
    async fn lease_is_waited_for_until_its_owner_cannot_rely_on_it() {
        let clock = Arc::new(SimClock::new()) as Arc<dyn Clock>;
        let sleep = |millis| clock.sleep(Duration::from_millis(millis));
        let given = GivenLeases::new(Arc::clone(&clock));
        // What the node gave before its start is unknown.
        assert_eq!(given.left(LOG), LEASE_WAIT);
        sleep(1_000).await;
        assert_eq!(given.left(LOG), Duration::from_millis(200));
        sleep(1_000).await;
        assert_eq!(given.left(LOG), Duration::ZERO);
        given.note(&owned(1));
        sleep(300).await;
        assert_eq!(given.left(LOG), Duration::from_millis(900));
        // Every lease begins anew.
        given.note(&owned(1));
        assert_eq!(given.left(LOG), LEASE_WAIT);
        assert_eq!(given.left(ExtentId::new(8)), Duration::ZERO);
        sleep(1_300).await;
        given.note(&[]);
        assert!(given.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn lease_that_is_given_back_is_not_waited_for_unless_a_later_epoch_has_one() {
        let clock = Arc::new(SimClock::new()) as Arc<dyn Clock>;
        let given = GivenLeases::new(Arc::clone(&clock));
        given.note(&owned(2));
        // Late.
        given.note(&owned(1));
        given.give_back(&owned(1));
        clock.sleep(Duration::from_millis(1_199)).await;
        assert_eq!(given.left(LOG), Duration::from_millis(1));
        given.note(&owned(2));
        given.give_back(&owned(2));
        // The member is too young to know of all leases.
        assert_eq!(given.left(LOG), Duration::from_millis(1));
        clock.sleep(Duration::from_millis(1)).await;
        assert_eq!(given.left(LOG), Duration::ZERO);
    }
}
