//! Recorded ids of extents: they are available when a task needs them, and a task waits for the
//! coordinator only if it must.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::changes::halves;
use crate::coordinator::{
    Compare, Coordinator, Error, Fault, Op, Reason, Revision, Session, Snapshot, TxnReply,
    Versioned, Watch,
};
use crate::env::Clock;
use crate::env::clock::SimClock;
use crate::index::engine::change;
use crate::index::engine::context::HostContext;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, World, put};
use crate::index::rows::Family;
use crate::types::HostId;
use crate::types::PartitionId;

/// A coordinator that counts its transactions, and can be set to refuse them or not to answer.
#[derive(Debug)]
struct Mute {
    inner: Arc<dyn Coordinator>,
    is_mute: AtomicBool,
    /// What each transaction is refused with.
    refusal: Mutex<Option<Error>>,
    transactions: AtomicUsize,
}

#[async_trait]
impl Coordinator for Mute {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        self.inner.get(key).await
    }

    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        self.inner.range(prefix).await
    }

    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        if self.is_mute.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if let Some(refusal) = self.refusal.lock().unwrap().clone() {
            return Err(refusal);
        }
        self.inner.txn(when, then).await
    }

    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error> {
        self.inner.watch(prefix, after).await
    }

    async fn open_session(&self, ttl: Duration) -> Result<Session, Error> {
        self.inner.open_session(ttl).await
    }

    async fn keep_alive(&self, session: Session) -> Result<(), Error> {
        self.inner.keep_alive(session).await
    }

    async fn close_session(&self, session: Session) -> Result<(), Error> {
        self.inner.close_session(session).await
    }
}

impl Mute {
    fn refuse(&self, refusal: impl Into<Option<Error>>) {
        *self.refusal.lock().unwrap() = refusal.into();
    }

    fn count(&self) -> usize {
        self.transactions.load(Ordering::Relaxed)
    }
}

/// Every way in which a transaction is refused.
fn refusals() -> [Error; 2] {
    let full = Reason::full("no room".to_owned());
    [full, "refused by the test".into()].map(|reason| Error::Unavailable { reason })
}

/// A partition whose coordinator can be muted.
struct Rig {
    partition: Partition,
    mute: Arc<Mute>,
    clock: Arc<SimClock>,
}

async fn open(world: &World) -> Rig {
    let mut deps = world.deps();
    let mute = Arc::new(Mute {
        inner: Arc::clone(&deps.coordinator),
        is_mute: AtomicBool::new(false),
        refusal: Mutex::default(),
        transactions: AtomicUsize::new(0),
    });
    let clock = Arc::new(SimClock::new());
    deps.coordinator = Arc::clone(&mute) as _;
    deps.env.clock = Arc::clone(&clock) as _;
    let context = Arc::new(HostContext::new(deps, world.config, HostId::new(0), Arc::default()));
    let partition = Partition::open(&context, PARTITION).await.unwrap();
    Rig { partition, mute, clock }
}

fn assert_refused(done: &Result<(), Failed>) {
    assert!(
        matches!(done, Err(Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_))),
        "{done:?}"
    );
}

/// Uses up ids until `count` are left.
fn leave(partition: &Partition, count: usize) {
    let extents = &partition.core.extents;
    while extents.fresh() > count {
        extents.take(&partition.core.context.pins).unwrap();
    }
}

/// A partition with a row to flush and `count` ids.
async fn with_ids(count: usize) -> Rig {
    let rig = open(&World::new().await).await;
    rig.partition.apply(put("a", "in a run")).await.unwrap();
    leave(&rig.partition, count);
    rig
}

/// What `work` comes to, unless others have many turns before it ends.
async fn soon<T>(work: impl Future<Output = T>) -> Option<T> {
    let others = async {
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = others => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_flush_with_ids_at_hand_does_not_wait_for_the_coordinator_nor_do_writes() {
    let Rig { partition, mute, .. } = with_ids(6).await;
    mute.is_mute.store(true, Ordering::Relaxed);
    let flushed = soon(partition.flush()).await;
    assert_eq!(flushed, Some(Ok(())), "fewer families have rows than ids are at hand");
    assert!(!partition.core.uses().is_empty());
    // More ids are asked for after it, and never given.
    let context = Arc::clone(&partition.core.context);
    let _chores = context.deps.env.tasks.clone().spawn("chores", {
        let context = Arc::clone(&context);
        async move { context.do_chores().await }
    });
    assert_eq!(soon(partition.apply(put("b", "after it"))).await, Some(Ok(())));
    let asked = mute.transactions.load(Ordering::Relaxed);
    mute.is_mute.store(false, Ordering::Relaxed);
    assert_eq!(partition.rows().await.len(), 2);
    assert!(asked > 0);
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_leaves_few_ids_has_more_recorded_later() {
    let Rig { partition, mute, .. } = with_ids(6).await;
    let before = mute.transactions.load(Ordering::Relaxed);
    partition.flush().await.unwrap();
    assert_eq!(mute.transactions.load(Ordering::Relaxed), before);
    partition.core.context.do_chores().await;
    assert_eq!(partition.core.extents.fresh(), 16);
    assert_eq!(mute.transactions.load(Ordering::Relaxed), before + 1);
    partition.apply(put("b", "in a run")).await.unwrap();
    partition.flush().await.unwrap();
    partition.core.context.do_chores().await;
    assert_eq!(mute.transactions.load(Ordering::Relaxed), before + 1, "enough are left");
}

#[tokio::test(start_paused = true)]
async fn ids_that_were_refused_are_not_asked_for_again_at_once() {
    for refusal in refusals() {
        let Rig { partition, mute, clock } = with_ids(0).await;
        mute.refuse(refusal);
        let before = mute.count();
        for _ in 0..10 {
            assert_refused(&partition.flush().await);
        }
        assert_eq!(mute.count(), before + 1, "asked once");
        mute.refuse(None);
        clock.sleep(Duration::from_millis(50)).await;
        partition.flush().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_roll_that_was_refused_is_not_tried_again_at_once() {
    for refusal in refusals() {
        let world = World::new().await;
        let Rig { partition, mute, clock } = open(&world).await;
        mute.refuse(refusal);
        let before = mute.count();
        for _ in 0..10 {
            partition.apply(put("a", "needs a roll")).await.unwrap_err();
        }
        assert_eq!(mute.count(), before + 1, "asked once");
        mute.refuse(None);
        clock.sleep(Duration::from_millis(50)).await;
        partition.apply(put("a", "needs a roll")).await.unwrap();
    }
}

/// A roll or a compaction may take an id between a reservation and its use.
#[tokio::test(start_paused = true)]
async fn a_reservation_has_ids_to_spare_and_goes_without_them_when_they_are_refused() {
    for refusal in refusals() {
        let world = World::new().await;
        let Rig { partition, mute, .. } = open(&world).await;
        partition.reserve(3).await.unwrap();
        leave(&partition, 3);
        mute.refuse(refusal);
        assert_eq!(partition.reserve(3).await, Ok(()));
        assert_eq!(partition.core.extents.fresh(), 3);
        assert_refused(&partition.reserve(4).await);
    }
    let world = World::new().await;
    let Rig { partition, .. } = open(&world).await;
    partition.reserve(3).await.unwrap();
    leave(&partition, 3);
    partition.reserve(3).await.unwrap();
    assert!(partition.core.extents.fresh() > 3);
}

#[tokio::test(start_paused = true)]
async fn a_flush_of_all_families_with_enough_ids_at_hand_does_not_wait_for_the_coordinator() {
    let world = World::new().await;
    let Rig { partition, mute, .. } = open(&world).await;
    partition.reserve(1).await.unwrap();
    leave(&partition, 8);
    mute.is_mute.store(true, Ordering::Relaxed);
    assert_eq!(soon(partition.reserve_for_a_flush(Family::ALL.len())).await, Some(Ok(())));
    mute.is_mute.store(false, Ordering::Relaxed);
    partition.core.context.do_chores().await;
    assert_eq!(partition.core.extents.fresh(), 16, "more were asked for meanwhile");
}

/// What comes of a roll is known only once its extent is made: each in vain costs an id.
#[tokio::test(start_paused = true)]
async fn rolls_in_vain_leave_ids_for_a_flush_of_all_families() {
    for refusal in refusals() {
        let mut world = World::new().await;
        world.config.log_extent_bytes = 3_000;
        let Rig { partition, mute, clock } = open(&world).await;
        partition.apply(put("a", "0")).await.unwrap();
        mute.refuse(refusal);
        for number in 0..100 {
            partition.apply(put("a", &number.to_string().repeat(500))).await.unwrap();
            clock.sleep(Duration::from_secs(10)).await;
        }
        partition.core.context.do_chores().await;
        let left = partition.core.extents.fresh();
        assert!(left >= Family::ALL.len(), "{left} ids are left");
        assert_eq!(partition.flush().await, Ok(()));
        mute.refuse(None);
        clock.sleep(Duration::from_secs(10)).await;
        for _ in 0..10 {
            partition.apply(put("a", &"x".repeat(1_000))).await.unwrap();
        }
        assert!(partition.core.log_extents() > 1, "it rolls again");
    }
}

/// It is unknown whether the record has more ids than the partition knows.
async fn make_stale(world: &World, partition: &Partition) {
    partition.reserve(3).await.unwrap();
    leave(partition, 3);
    world.store.inject(Fault::AmbiguousApplied);
    assert_refused(&partition.reserve(6).await);
}

#[tokio::test(start_paused = true)]
async fn a_split_and_a_merge_read_records_again_that_may_be_others() {
    let world = World::new().await;
    let Rig { partition: whole, .. } = open(&world).await;
    for key in ["a", "z"] {
        whole.apply(put(key, "in the log")).await.unwrap();
    }
    make_stale(&world, &whole).await;
    let halves = whole.split(halves(b"m")).await.unwrap().children;
    whole.core.lose();
    whole.abandon().await;
    let halves: Vec<Arc<Partition>> = halves.into_iter().map(Arc::new).collect();
    for half in &halves {
        half.flush().await.unwrap();
        while half.separate().await.unwrap() {}
        make_stale(&world, half).await;
    }
    let context = Arc::clone(&whole.core.context);
    let merged = change::merge(&context, PartitionId::new(4), &halves).await.unwrap();
    assert_eq!(merged.partition.rows().await.len(), 2);
}
