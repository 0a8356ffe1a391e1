//! The coordinator against a real etcd, of which each test starts its own.

mod admin;
mod faults;
mod full;
mod secured;
mod server;

use std::time::Duration;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::*;
use crate::coordinator::Event;
use crate::coordinator::conformance;
use crate::coordinator::conformance::World;
use crate::coordinator::conformance::commit;
use crate::coordinator::conformance::key;
use crate::coordinator::conformance::put;
use crate::coordinator::conformance::value;
use crate::env::OsClock;
use crate::env::SeededRand;
use crate::env::Tasks;

use server::Etcd;

fn env() -> Env {
    let rand = Arc::new(SeededRand::new(1));
    Env { clock: Arc::new(OsClock::new()), rand, tasks: Tasks::new() }
}

/// With time for an etcd that has just started on a busy machine.
fn patient(etcd: &Etcd) -> EtcdConfig {
    let call_timeout = Duration::from_secs(30);
    EtcdConfig { call_timeout, ..EtcdConfig::new(vec![etcd.url()]) }
}

async fn connect(etcd: &Etcd) -> EtcdCoordinator {
    EtcdCoordinator::connect(patient(etcd), &env()).await.unwrap()
}

async fn next(watch: &mut Box<dyn Watch>) -> Event {
    tokio::time::timeout(Duration::from_secs(60), watch.next()).await.expect("an event").unwrap()
}

/// An etcd has a clock of its own, and forgets when it is told to.
struct Outside(EtcdCoordinator);

#[async_trait]
impl World for Outside {
    fn ttl(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn forget_changes(&self, store: &dyn Coordinator) {
        let last = commit(store, &[], &[put("forgotten", "1")]).await;
        self.0.compact(last.0).await;
        // A watch that is up to date does not need what was forgotten, until it breaks.
        self.0.client.link.break_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_passes_the_suite() {
    let etcd = Etcd::new();
    let coordinator = connect(&etcd).await;
    let world = Outside(coordinator.clone());
    conformance::suite(Arc::new(coordinator), &world).await;
}

#[test]
fn sessions_live_for_whole_seconds_and_at_least_two() {
    let cases = [(0, 2), (1, 2), (2_000, 2), (2_001, 3), (10_000, 10)];
    for (millis, whole) in cases {
        assert_eq!(seconds(Duration::from_millis(millis)), whole, "{millis} ms");
    }
    assert_eq!(seconds(Duration::MAX), TTL_MAX);
}

#[test]
fn versions_before_3_4_are_refused() {
    for served in ["3.4.0", "3.4.23", "3.10.1", "3.6.0-rc.1", "4.0.0"] {
        check_version(served).unwrap();
    }
    for refused in ["3.3.27", "2.3.8", "", "x"] {
        let error = check_version(refused).unwrap_err();
        assert!(error.to_string().contains("3.4"), "{error}");
    }
}

#[tokio::test]
async fn wrong_configurations_say_what_is_wrong() {
    let cases = [
        (EtcdConfig::new(Vec::new()), "no address"),
        (EtcdConfig::new(vec!["etcd-1:2379".to_owned()]), "such as https://"),
        (EtcdConfig::new(vec!["http://user:secret@etcd-1:2379".to_owned()]), "such as https://"),
        (EtcdConfig::new(vec!["https://e:1".to_owned(), "http://e:2".to_owned()]), "not both"),
        (
            EtcdConfig { user: Some(user()), ..EtcdConfig::new(vec!["http://e:1".to_owned()]) },
            "over https only",
        ),
        (EtcdConfig::new(vec!["http://etcd-1:2379/v3".to_owned()]), "such as https://"),
        (
            EtcdConfig { prefix: Vec::new(), ..EtcdConfig::new(vec!["http://e:1".to_owned()]) },
            "empty",
        ),
        (
            EtcdConfig {
                tls: Some(EtcdTls::default()),
                ..EtcdConfig::new(vec!["http://etcd-1:2379".to_owned()])
            },
            "no https",
        ),
    ];
    for (config, what) in cases {
        let error = EtcdCoordinator::connect(config, &env()).await.unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

fn user() -> EtcdUser {
    EtcdUser { name: "blockyard".to_owned(), password: Zeroizing::new("secret".to_owned()) }
}

/// Three pages, of one revision while writes go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn range_of_many_pages_is_of_one_revision() {
    const KEYS: usize = 1200;
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let ops: Vec<Op> = (0..KEYS).map(|n| put(&format!("page/{n:04}"), "0")).collect();
    for ops in ops.chunks(128) {
        commit(&store, &[], ops).await;
    }
    // The first and the last key always change together.
    let write = async |round: usize| {
        let round = round.to_string();
        commit(&store, &[], &[put("page/0000", &round), put("page/1199", &round)]).await;
    };
    write(0).await;
    let writes = async {
        for round in 1..60 {
            write(round).await;
        }
    };
    let reads = async {
        for _ in 0..12 {
            let Snapshot { revision, entries } = store.range(b"page/").await.unwrap();
            assert_eq!(entries.len(), KEYS);
            assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
            assert!(entries.iter().all(|(_, stored)| stored.mod_revision <= revision));
            assert_eq!(entries[0].1, entries[KEYS - 1].1);
        }
    };
    futures_util::future::join(writes, reads).await;
}

/// Ten megabytes, of which four fit into an answer.
#[tokio::test]
async fn pages_of_large_values_become_smaller() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let large = Bytes::from(vec![b'x'; 500 << 10]);
    for n in 0..20 {
        commit(&store, &[], &[Op::Put(key(&format!("large/{n:02}")), large.clone())]).await;
    }
    let entries = store.range(b"large/").await.unwrap().entries;
    assert_eq!(entries.len(), 20);
    assert!(entries.iter().all(|(_, stored)| stored.value == large));
}

#[tokio::test]
async fn clusters_with_different_prefixes_do_not_see_each_other() {
    let etcd = Etcd::new();
    let with = |prefix: &str| {
        let config = EtcdConfig { prefix: prefix.into(), ..patient(&etcd) };
        async { EtcdCoordinator::connect(config, &env()).await.unwrap() }
    };
    let (one, two) = (with("/one/").await, with("/two/").await);
    let start = one.range(b"").await.unwrap().revision;
    let mut watch = one.watch(b"", start).await.unwrap();
    commit(&two, &[], &[put("a", "2")]).await;
    commit(&one, &[Compare::Absent(key("a"))], &[put("a", "1")]).await;
    let event = next(&mut watch).await;
    assert_eq!((event.key, event.value), (key("a"), Some(key("1"))));
    assert_eq!(one.range(b"").await.unwrap().entries.len(), 1);
    assert_eq!(value(&two, "a").await, Some(key("2")));
}

#[tokio::test]
async fn last_change_of_a_key_counts() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let start = commit(&store, &[], &[put("a", "1"), put("b", "1"), put("a", "2")]).await;
    assert_eq!(value(&store, "a").await, Some(key("2")));
    let mut watch = store.watch(b"", start).await.unwrap();
    let both = [put("a", "3"), Op::Delete(key("b")), Op::Delete(key("a")), put("b", "4")];
    let revision = commit(&store, &[], &both).await;
    let events = [next(&mut watch).await, next(&mut watch).await];
    let a = Event { key: key("a"), value: None, revision };
    let b = Event { key: key("b"), value: Some(key("4")), revision };
    assert_eq!(events, [a, b]);
}

#[tokio::test]
async fn transactions_have_at_most_128_conditions_and_changes() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let when = |n: usize| (0..n).map(|n| Compare::Absent(key(&n.to_string()))).collect::<Vec<_>>();
    let then = |n: usize| (0..n).map(|n| put(&n.to_string(), "x")).collect::<Vec<_>>();
    for (when, then) in [(when(129), then(1)), (when(1), then(129))] {
        let refused = store.txn(&when, &then).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    }
    assert!(store.range(b"").await.unwrap().entries.is_empty());
    commit(&store, &when(128), &then(128)).await;
    assert_eq!(store.range(b"").await.unwrap().entries.len(), 128);
}

#[tokio::test]
async fn too_large_a_transaction_changes_nothing_for_certain() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    // Above the limit of etcd for a request, and above that of its gRPC for a message.
    for bytes in [1_700 << 10, 3 << 20] {
        let op = Op::Put(key("huge"), Bytes::from(vec![0; bytes]));
        let refused = store.txn(&[], &[op]).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    }
    assert_eq!(value(&store, "huge").await, None);
}

#[tokio::test]
async fn sessions_that_etcd_cannot_have_are_over() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    for session in [Session(0), Session(u64::MAX), Session(7)] {
        let kept = store.keep_alive(session).await;
        assert!(matches!(kept, Err(Error::SessionEnded)), "{kept:?}");
        let put = Op::PutWithSession(key("s"), key("1"), session);
        let reply = store.txn(&[], &[put]).await;
        assert!(matches!(reply, Err(Error::SessionEnded)), "{reply:?}");
        store.close_session(session).await.unwrap();
    }
    assert_eq!(value(&store, "s").await, None);
}
