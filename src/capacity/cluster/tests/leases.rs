//! Read leases of logs, between two processes that may own them.

use std::time::Duration;

use super::*;
use crate::capacity::LEASE;
use crate::capacity::LEASE_WAIT;
use crate::capacity::OwnedLog;
use crate::capacity::ReadLeases;
use crate::capacity::copies::tests::cluster::Calls;

const THREE: Epoch = Epoch::new(3);

/// A log with one append, its owner, and a process that may become the next one.
struct Log {
    cluster: Cluster,
    log: ExtentId,
    owner: ClusterCapacity,
    next: ClusterCapacity,
}

impl Log {
    async fn new(seed: u64) -> Self {
        let cluster = Cluster::new(seed).await;
        let log = cluster.group(ExtentKind::Log).await.record.id().first();
        let (owner, next) = (cluster.process(Some(1)).await, cluster.process(Some(2)).await);
        owner.create(log, ExtentKind::Log, ONE).await.unwrap();
        append(&owner, log, ExtentOffset::START, &payload(1, 100)).await.unwrap();
        let this = Self { cluster, log, owner, next };
        // The nodes know then what leases they gave.
        this.sleep(LEASE_WAIT).await;
        this
    }

    fn owned(&self, epoch: Epoch) -> [OwnedLog; 1] {
        [OwnedLog { log: self.log, epoch }]
    }

    fn is_held(&self, epoch: Epoch) -> bool {
        self.owner.are_held(&self.owned(epoch))
    }

    async fn sleep(&self, time: Duration) {
        self.cluster.env.clock.sleep(time).await;
    }

    /// How long the fence of the next owner takes.
    async fn fence(&self, epoch: Epoch) -> Duration {
        let began = self.cluster.env.clock.monotonic();
        self.next.fence(self.log, epoch).await.unwrap();
        self.cluster.env.clock.monotonic() - began
    }
}

#[test]
fn next_owner_serves_when_no_lease_holds_any_more() {
    run(async {
        let log = Log::new(41).await;
        assert!(!log.is_held(ONE), "nobody was asked");
        assert!(!log.owner.are_held(&[]), "nothing shows that nobody else serves");
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        assert!(log.is_held(ONE) && !log.is_held(TWO));
        log.sleep(LEASE / 2).await;
        assert!(log.is_held(ONE));
        let waited = log.fence(TWO).await;
        // Answers take some milliseconds.
        let least = LEASE_WAIT - LEASE / 2 - LEASE / 20;
        assert!(waited >= least && waited < LEASE_WAIT, "{waited:?}");
        assert!(!log.is_held(ONE));
        // From then on the members say that it is fenced.
        assert_eq!(log.owner.ask(&log.owned(ONE)).await, [log.log]);
        assert!(!log.is_held(ONE));
    });
}

#[test]
fn fence_that_was_not_waited_for_does_not_spare_the_next_one_the_wait() {
    run(async {
        let log = Log::new(42).await;
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        {
            // The process that fences is told to stop.
            let fence = log.next.fence(log.log, TWO);
            tokio::pin!(fence);
            tokio::select! {
                biased;
                _ = &mut fence => panic!("the lease was not waited for"),
                () = log.sleep(LEASE / 2) => {}
            }
        }
        assert!(log.is_held(ONE), "its members are not asked again so soon");
        log.fence(THREE).await;
        assert!(!log.is_held(ONE));
    });
}

#[test]
fn leases_that_are_given_back_are_not_waited_for() {
    run(async {
        let log = Log::new(43).await;
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        log.owner.give_back(&log.owned(ONE)).await;
        assert!(!log.is_held(ONE));
        // Not even a question that is asked after that gives one.
        assert_eq!(log.owner.ask(&log.owned(ONE)).await, [log.log]);
        assert!(log.fence(TWO).await < LEASE / 10);
    });
}

#[test]
fn owner_that_opens_its_own_log_again_ends_its_leases_and_does_not_wait() {
    run(async {
        let log = Log::new(44).await;
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        let began = log.cluster.env.clock.monotonic();
        log.owner.fence(log.log, TWO).await.unwrap();
        assert!(log.cluster.env.clock.monotonic() - began < LEASE / 10);
        assert!(!log.is_held(ONE));
        assert_eq!(log.owner.ask(&log.owned(ONE)).await, [log.log]);
        assert!(log.owner.ask(&log.owned(TWO)).await.is_empty());
        assert!(log.is_held(TWO) && !log.is_held(ONE));
    });
}

#[test]
fn member_that_does_not_answer_gives_no_lease_but_its_last_one_holds() {
    run(async {
        let log = Log::new(45).await;
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        log.cluster.node(3).set_calls(Calls::Lost);
        log.sleep(LEASE / 2).await;
        assert_eq!(log.owner.ask(&log.owned(ONE)).await, [log.log]);
        assert!(log.is_held(ONE));
        log.sleep(LEASE / 2).await;
        assert!(!log.is_held(ONE));
        log.cluster.node(3).set_calls(Calls::Answered);
        assert!(log.owner.ask(&log.owned(ONE)).await.is_empty());
        assert!(log.is_held(ONE));
    });
}
