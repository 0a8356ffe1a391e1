//! Members that die, connections that break, histories that are compacted.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use tokio::net::TcpListener;

use super::*;

/// What became of a transaction, by the key that it writes.
type Outcomes = BTreeMap<String, Result<TxnReply, Error>>;

/// Writes keys one after the other, each once.
async fn write(store: &EtcdCoordinator, name: &str, count: usize) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for n in 0..count {
        let at = format!("written/{name}/{n:03}");
        let reply = store.txn(&[Compare::Absent(key(&at))], &[put(&at, "x")]).await;
        outcomes.insert(at, reply);
    }
    outcomes
}

/// Each transaction did what its caller was told, and the watch delivered just what was done.
async fn assert_true(store: &EtcdCoordinator, mut watch: Box<dyn Watch>, outcomes: &Outcomes) {
    let entries = store.range(b"written/").await.unwrap().entries;
    for (at, outcome) in outcomes {
        let stored = entries.iter().find(|(name, _)| name == at.as_bytes());
        match outcome {
            Ok(TxnReply::Committed(revision)) => {
                assert_eq!(stored.unwrap().1.mod_revision, *revision, "{at}");
            }
            Err(Error::Unavailable { .. }) => assert_eq!(stored, None, "{at}"),
            Err(Error::Ambiguous) => {}
            Ok(TxnReply::Rejected(_))
            | Err(Error::Compacted | Error::SessionEnded | Error::Corrupt { .. }) => {
                panic!("{at}: {outcome:?}")
            }
        }
    }
    let mut expected: Vec<(Revision, Bytes)> =
        entries.into_iter().map(|(name, stored)| (stored.mod_revision, name)).collect();
    expected.sort();
    for (revision, name) in expected {
        let event = loop {
            match tokio::time::timeout(Duration::from_secs(60), watch.next()).await.unwrap() {
                Ok(event) => break event,
                // Nothing is missed.
                Err(Error::Unavailable { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((event.revision, event.key), (revision, name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_restarted_etcd_keeps_its_word() {
    let mut etcd = Etcd::new();
    connect(&etcd).await;
    let config = EtcdConfig { call_timeout: Duration::from_secs(1), ..patient(&etcd) };
    let store = EtcdCoordinator::connect(config, &env()).await.unwrap();
    let start = store.range(b"").await.unwrap().revision;
    let watch = store.watch(b"written/", start).await.unwrap();
    let mut outcomes = Outcomes::new();
    for round in 0..2 {
        let names: Vec<String> = (0..8).map(|n| format!("{round}{n}")).collect();
        let writers = names.iter().map(|name| write(&store, name, 12));
        let crash = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            tokio::task::block_in_place(|| {
                etcd.kill();
                etcd.restart();
            });
        };
        let (written, ()) =
            futures_util::future::join(futures_util::future::join_all(writers), crash).await;
        outcomes.extend(written.into_iter().flatten());
    }
    etcd.kill();
    let reply = store.txn(&[], &[put("written/while-down", "x")]).await;
    assert!(matches!(reply, Err(Error::Unavailable { .. } | Error::Ambiguous)), "{reply:?}");
    outcomes.insert("written/while-down".to_owned(), reply);
    assert!(matches!(store.get(b"a").await, Err(Error::Unavailable { .. })));
    etcd.restart();
    let store = connect(&etcd).await;
    let count = |is: fn(&Result<TxnReply, Error>) -> bool| {
        outcomes.values().filter(|outcome| is(outcome)).count()
    };
    assert!(count(Result::is_ok) > 0 && count(Result::is_err) > 0, "{outcomes:?}");
    assert_true(&store, watch, &outcomes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_goes_on_over_broken_connections() {
    let etcd = Etcd::new();
    let (writer, reader) = (connect(&etcd).await, connect(&etcd).await);
    let start = writer.range(b"").await.unwrap().revision;
    let watch = reader.watch(b"written/", start).await.unwrap();
    let breaks = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(40)).await;
            reader.client.link.break_all().await;
        }
    };
    let (outcomes, ()) = futures_util::future::join(write(&writer, "w", 200), breaks).await;
    assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
    assert_true(&reader, watch, &outcomes).await;
}

/// A transaction that was sent is not repeated, whatever becomes of its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_over_broken_connections_happen_at_most_once() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let start = store.range(b"").await.unwrap().revision;
    let watch = store.watch(b"written/", start).await.unwrap();
    let breaks = async {
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(7)).await;
            store.client.link.break_all().await;
        }
    };
    let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let writers = names.iter().map(|name| write(&store, name, 40));
    let (written, ()) =
        futures_util::future::join(futures_util::future::join_all(writers), breaks).await;
    assert_true(&store, watch, &written.into_iter().flatten().collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_members_are_enough() {
    let mut members = Etcd::three();
    connect(&members[0]).await;
    let urls = members.iter().map(Etcd::url).collect();
    let store = EtcdCoordinator::connect(EtcdConfig::new(urls), &env()).await.unwrap();
    let start = store.range(b"").await.unwrap().revision;
    let watch = store.watch(b"written/", start).await.unwrap();
    let mut outcomes = write(&store, "three", 5).await;
    // The member that is connected, and maybe the leader.
    members[0].kill();
    outcomes.extend(write(&store, "two", 5).await);
    store.range(b"").await.unwrap();
    let committed = outcomes.values().filter(|outcome| outcome.is_ok()).count();
    assert!(committed > 5, "{outcomes:?}");
    assert_true(&store, watch, &outcomes).await;
}

#[tokio::test]
async fn member_that_does_not_answer_is_left() {
    let etcd = Etcd::new();
    connect(&etcd).await;
    // It takes connections, and reads nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    // With a user the log-in is what meets the silence.
    for user in [None, Some(user())] {
        let config = EtcdConfig::new(vec![url.clone(), etcd.url()]);
        let config = EtcdConfig { call_timeout: Duration::from_secs(3), user, ..config };
        let store = EtcdCoordinator::connect(config, &env()).await.unwrap();
        commit(&store, &[], &[put("a", "1")]).await;
    }
}

#[tokio::test]
async fn etcd_that_is_not_there_is_unavailable() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let config = EtcdConfig::new(vec![url.clone()]);
    let config = EtcdConfig { call_timeout: Duration::from_millis(300), ..config };
    let error = EtcdCoordinator::connect(config, &env()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }));
    assert!(error.to_string().contains(&url), "{error}");
}

/// Some etcds do not deliver such a removal, nor end the watch (etcd issue 18089).
#[tokio::test]
async fn removal_at_the_compacted_revision_is_not_missed() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let put = commit(&store, &[], &[put("a", "1")]).await;
    let removed = commit(&store, &[], &[Op::Delete(key("a"))]).await;
    store.compact(removed.0).await;
    match store.watch(b"", put).await {
        Err(error) => assert!(matches!(error, Error::Compacted), "{error}"),
        Ok(mut watch) => assert_eq!(next(&mut watch).await.value, None),
    }
    assert!(store.watch(b"", removed).await.is_ok());
}

/// As after a restore of etcd from a backup: what is newer has to be read again.
#[tokio::test]
async fn watch_after_a_revision_that_never_was_is_refused() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let now = store.range(b"").await.unwrap().revision;
    let refused = store.watch(b"", Revision(now.0 + 1)).await.err();
    assert!(matches!(refused, Some(Error::Compacted)), "{refused:?}");
}

/// The map of partitions is followed by a watch that is asked, and never waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_is_delivered_as_a_whole_to_a_reader_that_does_not_wait() {
    let etcd = Etcd::new();
    let store = connect(&etcd).await;
    let start = store.range(b"").await.unwrap().revision;
    let mut watch = store.watch(b"whole/", start).await.unwrap();
    for _ in 0..20 {
        let ops: Vec<Op> = (0..50).map(|n| put(&format!("whole/{n}"), "x")).collect();
        let revision = commit(&store, &[], &ops).await;
        let mut found = 0;
        for _ in 0..10_000 {
            while let Some(event) = watch.next().now_or_never() {
                assert_eq!(event.unwrap().revision, revision);
                found += 1;
            }
            if found > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(found, 50);
    }
}

/// Nothing of a coordinator is left when its tasks end.
#[tokio::test]
async fn tasks_end_when_the_program_stops() {
    let etcd = Etcd::new();
    let env = env();
    let store = EtcdCoordinator::connect(patient(&etcd), &env).await.unwrap();
    let mut watch = store.watch(b"", Revision(1)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), env.tasks.shutdown()).await.expect("they end");
    assert!(matches!(watch.next().await, Err(Error::Unavailable { .. })));
    assert!(matches!(store.get(b"a").await, Err(Error::Unavailable { .. })));
}
