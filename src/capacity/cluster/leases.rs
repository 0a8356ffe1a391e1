//! The read leases of this process: which members of a log said lately that it is not fenced there
//! (`capacity/leases.rs`).
//!
//! Invariant: a lease is relied on only under the epoch for which it was asked, and no lease below
//! the epoch of the latest fence of this process is.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::ClusterCapacity;
use super::Found;
use crate::capacity::Error;
use crate::capacity::LEASE;
use crate::capacity::LEASE_WAIT;
use crate::capacity::Member;
use crate::capacity::OwnedLog;
use crate::capacity::ReadLeases;
use crate::capacity::groups::Followed;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::NodeId;

/// A member that has not answered a question within this time gives no lease: so another question
/// is answered before the last lease ends.
const ANSWERS_WITHIN: Duration = Duration::from_millis(250);
/// After this time it is looked whether the owner before has given a lease back; then after twice
/// that, and so on.
const GIVEN_BACK_FIRST: Duration = Duration::from_millis(25);
/// What is known of a log that was not asked about for so long is forgotten. No answer comes so
/// late.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// The leases of logs.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    logs: Mutex<BTreeMap<ExtentId, HeldLog>>,
}

/// The leases of a log.
#[derive(Debug)]
struct HeldLog {
    /// Under which it is owned. Answers to questions of another epoch do not count.
    epoch: Epoch,
    /// Until when the lease of each member holds: [`Clock::boot_time`](crate::env::Clock).
    until: Vec<(NodeId, Duration)>,
    /// Whether they were given back.
    is_over: bool,
    /// When it was asked about.
    used: Duration,
}

impl HeldLog {
    fn holds(&self, epoch: Epoch, now: Duration) -> bool {
        let given = self.until.iter().all(|(_, until)| now < *until);
        self.epoch == epoch && !self.is_over && !self.until.is_empty() && given
    }
}

impl HeldLeases {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ExtentId, HeldLog>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn are_held(&self, logs: &[OwnedLog], now: Duration) -> bool {
        let held = self.lock();
        let holds = |owned: &OwnedLog| {
            held.get(&owned.log).is_some_and(|known| known.holds(owned.epoch, now))
        };
        !logs.is_empty() && logs.iter().all(holds)
    }

    /// Whether this process may ask for leases of a log under its epoch.
    fn begin(&self, owned: OwnedLog, members: &[NodeId], now: Duration) -> bool {
        let OwnedLog { log, epoch } = owned;
        let mut held = self.lock();
        if let Some(known) = held.get_mut(&log) {
            known.used = now;
            if known.epoch > epoch || (known.epoch == epoch && known.is_over) {
                return false;
            }
            let of_whom = known.until.iter().map(|(node, _)| node);
            if known.epoch == epoch && of_whom.eq(members) {
                return true;
            }
        }
        let until = members.iter().map(|node| (*node, Duration::ZERO)).collect();
        held.insert(log, HeldLog { epoch, until, is_over: false, used: now });
        true
    }

    /// A member has given leases of these logs.
    fn given(&self, node: NodeId, logs: &[OwnedLog], until: Duration) {
        let mut held = self.lock();
        for OwnedLog { log, epoch } in logs {
            let known = held.get_mut(log).filter(|known| known.epoch == *epoch);
            let of_node = known.into_iter().flat_map(|known| &mut known.until);
            for (_, of_node) in of_node.filter(|(of, _)| *of == node) {
                *of_node = until.max(*of_node);
            }
        }
    }

    /// Ends all leases of a log below an epoch. Returns whether nobody else can have one: this
    /// process had them under the epoch before. To have fenced the log is not enough, since an
    /// earlier owner may not have been waited for.
    pub(super) fn end_below(&self, log: ExtentId, epoch: Epoch, now: Duration) -> bool {
        let mut held = self.lock();
        let known = held.get(&log).map(|known| (known.epoch, !known.until.is_empty()));
        if known.is_none_or(|(known, _)| known < epoch) {
            let over = HeldLog { epoch, until: Vec::new(), is_over: false, used: now };
            held.insert(log, over);
        }
        known.is_some_and(|(known, had_leases)| had_leases && known.next() == epoch)
    }

    /// Whether this process still owns a log under this epoch, as far as it knows.
    fn is_owned(&self, OwnedLog { log, epoch }: OwnedLog) -> bool {
        self.lock().get(&log).is_some_and(|known| known.epoch == epoch && !known.is_over)
    }

    fn give_back(&self, logs: &[OwnedLog], now: Duration) {
        let mut held = self.lock();
        for OwnedLog { log, epoch } in logs {
            if held.get(log).is_none_or(|known| known.epoch <= *epoch) {
                let over = HeldLog { epoch: *epoch, until: Vec::new(), is_over: true, used: now };
                held.insert(*log, over);
            }
        }
    }

    /// Whether a member has given a lease of any of these logs that holds now.
    fn has_given(&self, node: NodeId, logs: &[OwnedLog], now: Duration) -> bool {
        let held = self.lock();
        let mut of_logs = logs.iter().filter_map(|owned| held.get(&owned.log));
        of_logs.any(|known| known.until.iter().any(|(of, until)| *of == node && now < *until))
    }
}

impl ClusterCapacity {
    /// Whether the leases of any log hold now.
    #[must_use]
    pub fn has_leases(&self) -> bool {
        let now = self.env.clock.boot_time();
        self.leases.lock().values().any(|known| known.holds(known.epoch, now))
    }

    /// Waits until no earlier owner of a log can rely on a lease of this member, which has fenced
    /// the log just now. Reads need the leases of all members.
    pub(super) async fn outlive_leases(&self, member: &dyn Member, log: ExtentId) {
        let clock = &self.env.clock;
        let known = async {
            let mut pause = GIVEN_BACK_FIRST;
            loop {
                match member.lease_left(log).await {
                    Ok(Duration::ZERO) => return,
                    // The owner before may give it back meanwhile.
                    Ok(left) => clock.sleep(left.min(pause)).await,
                    Err(_) => std::future::pending().await,
                }
                pause *= 2;
            }
        };
        // Whatever the member says of it: it gave none since the fence.
        tokio::select! {
            biased;
            () = known => {}
            () = clock.sleep(LEASE_WAIT) => {}
        }
    }

    /// The members of logs that may be asked, with the logs of each; and the logs of which some
    /// member cannot be asked.
    async fn questions(&self, logs: &[OwnedLog]) -> (BTreeMap<NodeId, Vec<OwnedLog>>, Named) {
        let now = self.env.clock.boot_time();
        self.leases.lock().retain(|_, known| now < known.used + FORGOTTEN_AFTER);
        let (mut questions, mut named) = (BTreeMap::<_, Vec<_>>::new(), Named::new());
        for owned in logs {
            let found = self.find(owned.log).await;
            let Ok(Found { record, .. }) = found else {
                named.insert(owned.log);
                continue;
            };
            if !self.leases.begin(*owned, record.members(), now) {
                named.insert(owned.log);
                continue;
            }
            for node in record.members() {
                questions.entry(*node).or_default().push(*owned);
            }
        }
        (questions, named)
    }

    /// Asks one member. Returns the logs for which it gives no lease.
    async fn ask_member(&self, node: NodeId, logs: Vec<OwnedLog>) -> Vec<ExtentId> {
        let all = || logs.iter().map(|owned| owned.log).collect();
        let Some(member) = self.nodes.member(node) else { return all() };
        let sent = self.env.clock.boot_time();
        let answer = tokio::select! {
            biased;
            answer = member.fenced(&logs) => answer.ok(),
            () = self.env.clock.sleep(ANSWERS_WITHIN) => None,
        };
        let Some(named) = answer else {
            // One late answer is no trouble yet.
            if !self.leases.has_given(node, &logs, self.env.clock.boot_time()) {
                self.ids.suspect(node);
            }
            return all();
        };
        let is_named = |owned: &OwnedLog| named.contains(&owned.log);
        let given: Vec<OwnedLog> = logs.iter().filter(|owned| !is_named(owned)).copied().collect();
        self.leases.given(node, &given, sent + LEASE);
        named
    }
}

/// Logs for which some member gives no lease.
type Named = BTreeSet<ExtentId>;

#[async_trait]
impl ReadLeases for ClusterCapacity {
    fn are_held(&self, logs: &[OwnedLog]) -> bool {
        self.leases.are_held(logs, self.env.clock.boot_time())
    }

    async fn ask(&self, logs: &[OwnedLog]) -> Vec<ExtentId> {
        let (questions, mut named) = self.questions(logs).await;
        let asked = questions.into_iter().map(|(node, logs)| self.ask_member(node, logs));
        named.extend(join_all(asked).await.into_iter().flatten());
        // What a fence of this process has ended meanwhile does not count either.
        let is_past = |owned: &&OwnedLog| !self.leases.is_owned(**owned);
        named.extend(logs.iter().filter(is_past).map(|owned| owned.log));
        named.into_iter().collect()
    }

    fn to_be_left(&self, logs: &[OwnedLog]) -> Vec<ExtentId> {
        let is_left = |log: &ExtentId| match self.groups.get(log.group()) {
            Followed::Record(at) => self.ids.leaves(&at.record),
            Followed::Unread(_) | Followed::Unknown => false,
        };
        logs.iter().map(|owned| owned.log).filter(is_left).collect()
    }

    async fn give_back(&self, logs: &[OwnedLog]) {
        self.leases.give_back(logs, self.env.clock.boot_time());
        let mut of_nodes = BTreeMap::<NodeId, Vec<OwnedLog>>::new();
        for owned in logs {
            let Ok(Found { record, .. }) = self.find(owned.log).await else { continue };
            for node in record.members() {
                of_nodes.entry(*node).or_default().push(*owned);
            }
        }
        let told = of_nodes.into_iter().map(|(node, logs)| async move {
            let Some(member) = self.nodes.member(node) else { return Ok(()) };
            self.soon(node, async { member.give_back(&logs).await }).await
        });
        let told: Result<(), Error> = join_all(told).await.into_iter().collect();
        if let Err(error) = told {
            tracing::info!(%error, "read leases that are not given back end by themselves");
        }
    }
}
