//! The conformance suite of coordinators, which all of them pass.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use crate::env::Clock;
use crate::env::Env;
use crate::env::Rand;
use crate::env::Tasks;
use crate::types::Timestamp;

use super::Compare;
use super::Coordinator;
use super::Error;
use super::Event;
use super::Op;
use super::Revision;
use super::TxnReply;
use super::Watch;
use super::history;

/// A clock that only a test advances.
#[derive(Debug)]
pub(super) struct ManualClock(watch::Sender<Duration>);

impl ManualClock {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Duration::ZERO)))
    }

    pub(super) fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        *self.0.borrow()
    }

    fn thread_cpu(&self) -> Duration {
        self.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.monotonic() + duration;
        self.0.subscribe().wait_for(|now| *now >= until).await.unwrap();
    }
}

/// What a test does to a store from outside.
#[async_trait]
pub(super) trait World: Sync {
    /// How long the suite's sessions live.
    fn ttl(&self) -> Duration;

    /// Lets time pass.
    async fn pass(&self, time: Duration);

    /// Makes the store forget its changes, so that watches which have not got them fall behind.
    async fn forget_changes(&self, store: &dyn Coordinator);
}

/// A store in this process: its time is the test's, and it keeps a bounded number of changes.
#[async_trait]
impl World for ManualClock {
    fn ttl(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn pass(&self, time: Duration) {
        self.advance(time);
    }

    async fn forget_changes(&self, store: &dyn Coordinator) {
        let ops: Vec<Op> = (0..128).map(|n| put(&format!("flood/{n}"), "x")).collect();
        for _ in 0..=history::HISTORY_EVENTS_MAX / ops.len() {
            commit(store, &[], &ops).await;
        }
    }
}

/// A fixed sequence from a seed.
#[derive(Debug)]
pub(super) struct SeededRand(std::sync::Mutex<u64>);

impl SeededRand {
    pub(super) fn new(seed: u64) -> Self {
        Self(std::sync::Mutex::new(seed))
    }
}

impl Rand for SeededRand {
    fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }
}

/// An environment on `clock`.
pub(super) fn env(clock: &Arc<ManualClock>, seed: u64) -> Env {
    let clock: Arc<dyn Clock> = Arc::clone(clock) as Arc<dyn Clock>;
    Env { clock, rand: Arc::new(SeededRand::new(seed)), tasks: Tasks::new() }
}

/// Runs the suite on an empty store.
pub(super) async fn suite(coordinator: Arc<dyn Coordinator>, world: &dyn World) {
    let store = coordinator.as_ref();
    missing_keys_are_none(store).await;
    put_get_delete(store).await;
    compares_decide(store).await;
    rejected_txn_changes_nothing(store).await;
    txn_that_changes_nothing_keeps_the_revision(store).await;
    range_is_ordered_and_exact(store).await;
    watch_delivers_every_change_in_order(store).await;
    watch_starts_after_the_revision_asked_for(store).await;
    watch_next_is_cancel_safe(store).await;
    racing_compare_and_set_has_one_winner(&coordinator).await;
    concurrent_increments_all_count(&coordinator).await;
    session_keys_go_when_it_expires(store, world).await;
    session_keys_go_when_it_is_closed(store, world).await;
    session_kept_alive_stays(store, world).await;
    overwritten_session_key_stays(store, world).await;
    ended_session_is_refused(store, world).await;
    // Last, because it removes all earlier changes from the history.
    watch_that_falls_behind_gets_an_error(store, world).await;
}

pub(super) fn key(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn put(at: &str, value: &str) -> Op {
    Op::Put(key(at), key(value))
}

pub(super) async fn commit(store: &dyn Coordinator, when: &[Compare], then: &[Op]) -> Revision {
    match store.txn(when, then).await.unwrap() {
        TxnReply::Committed(revision) => revision,
        TxnReply::Rejected(revision) => panic!("rejected at {revision:?}: {when:?}"),
    }
}

pub(super) async fn value(store: &dyn Coordinator, at: &str) -> Option<Bytes> {
    store.get(at.as_bytes()).await.unwrap().map(|stored| stored.value)
}

async fn missing_keys_are_none(store: &dyn Coordinator) {
    assert_eq!(store.get(b"missing").await.unwrap(), None);
    assert!(store.range(b"missing").await.unwrap().entries.is_empty());
}

async fn put_get_delete(store: &dyn Coordinator) {
    let first = commit(store, &[], &[put("pgd", "1")]).await;
    let stored = store.get(b"pgd").await.unwrap().unwrap();
    assert_eq!((stored.value, stored.mod_revision), (key("1"), first));
    let second = commit(store, &[], &[put("pgd", "2")]).await;
    assert_eq!(second, Revision(first.0 + 1));
    assert_eq!(store.get(b"pgd").await.unwrap().unwrap().mod_revision, second);
    let third = commit(store, &[], &[Op::Delete(key("pgd"))]).await;
    assert_eq!(third, Revision(second.0 + 1));
    assert_eq!(value(store, "pgd").await, None);
    let empty = commit(store, &[], &[put("pgd", "")]).await;
    assert_eq!(empty, Revision(third.0 + 1));
    assert_eq!(value(store, "pgd").await, Some(key("")), "an empty value is a value");
}

async fn compares_decide(store: &dyn Coordinator) {
    let at = commit(store, &[], &[put("cmp", "v")]).await;
    let there = key("cmp");
    let gone = key("cmp-missing");
    let cases = [
        (Compare::ModRevision(there.clone(), at), true),
        (Compare::ModRevision(there.clone(), Revision(at.0 - 1)), false),
        (Compare::ModRevision(gone.clone(), at), false),
        (Compare::ModRevision(gone.clone(), Revision(0)), false),
        (Compare::Absent(gone.clone()), true),
        (Compare::Absent(there.clone()), false),
        (Compare::Value(there.clone(), key("v")), true),
        (Compare::Value(there.clone(), key("w")), false),
        (Compare::Value(there, key("")), false),
        (Compare::Value(gone, key("")), false),
    ];
    for (compare, holds) in cases {
        let reply =
            store.txn(std::slice::from_ref(&compare), &[put("cmp-out", "x")]).await.unwrap();
        assert_eq!(matches!(reply, TxnReply::Committed(_)), holds, "{compare:?}");
    }
}

async fn rejected_txn_changes_nothing(store: &dyn Coordinator) {
    let before = commit(store, &[], &[put("atomic/a", "1"), put("atomic/b", "1")]).await;
    let when = [Compare::Value(key("atomic/a"), key("1")), Compare::Absent(key("atomic/b"))];
    let then = [put("atomic/a", "2"), Op::Delete(key("atomic/b")), put("atomic/c", "2")];
    assert_eq!(store.txn(&when, &then).await.unwrap(), TxnReply::Rejected(before));
    let snapshot = store.range(b"atomic/").await.unwrap();
    assert_eq!(snapshot.revision, before);
    let seen: Vec<_> = snapshot.entries.iter().map(|(k, v)| (k.clone(), v.value.clone())).collect();
    assert_eq!(seen, [(key("atomic/a"), key("1")), (key("atomic/b"), key("1"))]);
    // With conditions that hold, all changes are applied at one revision.
    let after = commit(store, &when[..1], &then).await;
    let snapshot = store.range(b"atomic/").await.unwrap();
    let seen: Vec<_> = snapshot.entries.iter().map(|(k, v)| (k.clone(), v.mod_revision)).collect();
    assert_eq!(seen, [(key("atomic/a"), after), (key("atomic/c"), after)]);
}

async fn txn_that_changes_nothing_keeps_the_revision(store: &dyn Coordinator) {
    let before = store.range(b"").await.unwrap().revision;
    assert_eq!(commit(store, &[Compare::Absent(key("nothing"))], &[]).await, before);
    assert_eq!(commit(store, &[], &[Op::Delete(key("nothing"))]).await, before);
}

async fn range_is_ordered_and_exact(store: &dyn Coordinator) {
    let names = ["rang", "range/", "range/\u{1}", "range/a", "range/a/b", "range/b", "range0"];
    let ops: Vec<Op> = names.iter().rev().map(|name| put(name, name)).collect();
    let at = commit(store, &[], &ops).await;
    let snapshot = store.range(b"range/").await.unwrap();
    assert_eq!(snapshot.revision, at);
    let seen: Vec<Bytes> = snapshot.entries.into_iter().map(|(key, _)| key).collect();
    assert_eq!(seen, names[1..6].iter().map(|name| key(name)).collect::<Vec<_>>());
    let high = Bytes::from_static(&[0xff, 0xff]);
    commit(store, &[], &[Op::Put(high.clone(), key("last"))]).await;
    assert_eq!(store.range(&[0xff]).await.unwrap().entries.len(), 1);
    commit(store, &[], &[Op::Delete(high)]).await;
}

async fn next(watch: &mut Box<dyn Watch>) -> Event {
    tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("an event").unwrap()
}

/// Returns the next event. If the store begins to sleep only after the time has passed, it sleeps
/// longer than the test expects. So this lets more time pass until there is an event, at most
/// `more`.
async fn next_in(watch: &mut Box<dyn Watch>, world: &dyn World, more: Duration) -> Event {
    for _ in 0..10 {
        if let Ok(event) = tokio::time::timeout(Duration::from_secs(3), watch.next()).await {
            return event.unwrap();
        }
        world.pass(more / 10).await;
    }
    next(watch).await
}

async fn watch_delivers_every_change_in_order(store: &dyn Coordinator) {
    let start = store.range(b"watch/").await.unwrap().revision;
    let mut watch = store.watch(b"watch/", start).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..50 {
        let at = format!("watch/{}", round % 7);
        let revision = commit(store, &[], &[put(&at, "x"), put("elsewhere", "x")]).await;
        expected.push(Event { key: key(&at), value: Some(key("x")), revision });
        if round % 5 == 0 {
            let revision = commit(store, &[], &[Op::Delete(key(&at))]).await;
            expected.push(Event { key: key(&at), value: None, revision });
        }
    }
    for event in expected {
        assert_eq!(next(&mut watch).await, event);
    }
}

async fn watch_starts_after_the_revision_asked_for(store: &dyn Coordinator) {
    let first = commit(store, &[], &[put("after/a", "1"), put("after/b", "1")]).await;
    let second = commit(store, &[], &[put("after/a", "2")]).await;
    let mut from_first = store.watch(b"after/", first).await.unwrap();
    let event = next(&mut from_first).await;
    assert_eq!((event.key, event.revision), (key("after/a"), second));
    let mut from_before = store.watch(b"after/", Revision(first.0 - 1)).await.unwrap();
    let both = [next(&mut from_before).await.key, next(&mut from_before).await.key];
    assert_eq!(both, [key("after/a"), key("after/b")]);
}

async fn watch_next_is_cancel_safe(store: &dyn Coordinator) {
    let start = store.range(b"").await.unwrap().revision;
    let mut watch = store.watch(b"cancel/", start).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(5), watch.next()).await;
    assert!(waited.is_err(), "nothing has changed yet");
    commit(store, &[], &[put("cancel/a", "1"), put("cancel/b", "1")]).await;
    assert_eq!(next(&mut watch).await.key, key("cancel/a"));
    assert_eq!(next(&mut watch).await.key, key("cancel/b"));
}

async fn racing_compare_and_set_has_one_winner(store: &Arc<dyn Coordinator>) {
    let racers = (0..16).map(|n| {
        let store = Arc::clone(store);
        async move {
            let when = [Compare::Absent(key("race"))];
            store.txn(&when, &[put("race", &n.to_string())]).await.unwrap()
        }
    });
    let replies = futures_util::future::join_all(racers).await;
    let won = replies.iter().filter(|reply| matches!(reply, TxnReply::Committed(_))).count();
    assert_eq!(won, 1);
}

async fn concurrent_increments_all_count(store: &Arc<dyn Coordinator>) {
    commit(store.as_ref(), &[], &[put("sum", "0")]).await;
    let adders = (0..8).map(|_| {
        let store = Arc::clone(store);
        async move {
            for _ in 0..4 {
                loop {
                    let seen = store.get(b"sum").await.unwrap().unwrap();
                    let sum: u32 = std::str::from_utf8(&seen.value).unwrap().parse().unwrap();
                    let when = [Compare::ModRevision(key("sum"), seen.mod_revision)];
                    let reply = store.txn(&when, &[put("sum", &(sum + 1).to_string())]).await;
                    if matches!(reply.unwrap(), TxnReply::Committed(_)) {
                        break;
                    }
                }
            }
        }
    });
    futures_util::future::join_all(adders).await;
    assert_eq!(value(store.as_ref(), "sum").await, Some(key("32")));
}

async fn session_keys_go_when_it_expires(store: &dyn Coordinator, world: &dyn World) {
    let ttl = world.ttl();
    let session = store.open_session(ttl).await.unwrap();
    let long = store.open_session(ttl * 3).await.unwrap();
    let ops = [
        Op::PutWithSession(key("lease/a"), key("1"), session),
        Op::PutWithSession(key("lease/b"), key("1"), session),
        Op::PutWithSession(key("lease/c"), key("1"), long),
        put("lease/d", "1"),
    ];
    let start = commit(store, &[], &ops).await;
    let mut watch = store.watch(b"lease/", start).await.unwrap();
    world.pass(ttl).await;
    let events = [next_in(&mut watch, world, ttl).await, next(&mut watch).await];
    for (event, at) in events.iter().zip(["lease/a", "lease/b"]) {
        assert_eq!((&event.key, &event.value), (&key(at), &None));
    }
    assert_eq!(events[0].revision, events[1].revision, "they are removed together");
    let left: Vec<Bytes> =
        store.range(b"lease/").await.unwrap().entries.into_iter().map(|(k, _)| k).collect();
    assert_eq!(left, [key("lease/c"), key("lease/d")]);
    store.close_session(long).await.unwrap();
}

async fn session_keys_go_when_it_is_closed(store: &dyn Coordinator, world: &dyn World) {
    let session = store.open_session(world.ttl()).await.unwrap();
    commit(store, &[], &[Op::PutWithSession(key("close"), key("1"), session)]).await;
    store.close_session(session).await.unwrap();
    assert_eq!(value(store, "close").await, None);
    store.close_session(session).await.unwrap();
}

async fn session_kept_alive_stays(store: &dyn Coordinator, world: &dyn World) {
    let ttl = world.ttl();
    let session = store.open_session(ttl).await.unwrap();
    commit(store, &[], &[Op::PutWithSession(key("alive"), key("1"), session)]).await;
    for _ in 0..5 {
        world.pass(ttl / 2).await;
        store.keep_alive(session).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(value(store, "alive").await, Some(key("1")));
    }
    store.close_session(session).await.unwrap();
}

async fn overwritten_session_key_stays(store: &dyn Coordinator, world: &dyn World) {
    let session = store.open_session(world.ttl()).await.unwrap();
    commit(store, &[], &[Op::PutWithSession(key("taken"), key("1"), session)]).await;
    commit(store, &[], &[put("taken", "2")]).await;
    store.close_session(session).await.unwrap();
    assert_eq!(value(store, "taken").await, Some(key("2")));
}

async fn ended_session_is_refused(store: &dyn Coordinator, world: &dyn World) {
    let ttl = world.ttl();
    let session = store.open_session(ttl).await.unwrap();
    world.pass(ttl).await;
    assert!(matches!(store.keep_alive(session).await, Err(Error::SessionEnded)));
    let put = Op::PutWithSession(key("late"), key("1"), session);
    let reply = store.txn(&[], &[self::put("late-other", "1"), put]).await;
    assert!(matches!(reply, Err(Error::SessionEnded)), "{reply:?}");
    assert_eq!(value(store, "late").await, None);
    assert_eq!(value(store, "late-other").await, None, "all or nothing");
}

async fn watch_that_falls_behind_gets_an_error(store: &dyn Coordinator, world: &dyn World) {
    let start = commit(store, &[], &[put("old", "1")]).await;
    let mut watch = store.watch(b"old", start).await.unwrap();
    world.forget_changes(store).await;
    let behind = tokio::time::timeout(Duration::from_secs(30), watch.next()).await;
    assert!(matches!(behind, Ok(Err(Error::Compacted))), "{behind:?}");
    assert!(matches!(store.watch(b"old", start).await, Err(Error::Compacted)));
    let now = store.range(b"").await.unwrap().revision;
    let mut fresh = store.watch(b"old", now).await.unwrap();
    let last = commit(store, &[], &[put("old", "2")]).await;
    assert_eq!(next(&mut fresh).await.revision, last);
}
