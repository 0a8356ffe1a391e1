//! An etcd whose quota is used up.

use super::*;

const VALUE_BYTES: usize = 128 << 10;

/// The smallest store that takes some values.
fn small() -> Etcd {
    Etcd::start(tempfile::tempdir().unwrap(), &["--quota-backend-bytes=2097152"])
}

fn large(at: &str) -> Op {
    Op::Put(key(at), Bytes::from(vec![b'x'; VALUE_BYTES]))
}

#[tokio::test]
async fn full_etcd_is_told_as_full_and_still_read() {
    let etcd = small();
    let store = connect(&etcd).await;
    commit(&store, &[], &[put("first", "1")]).await;
    let (mut n, mut written) = (0, Vec::new());
    let full = loop {
        let at = format!("fill/{n}");
        match store.txn(&[], &[large(&at)]).await {
            Ok(_) => written.push(at),
            // If etcd wrote its pages meanwhile, it may have carried it out.
            Err(Error::Ambiguous) if value(&store, &at).await.is_some() => written.push(at),
            Err(Error::Ambiguous) => {}
            Err(error) => break error,
        }
        n += 1;
        assert!(n < 100, "it is not full after {n} values");
    };
    assert!(full.is_full(), "{full:?}");
    assert!(!written.is_empty());
    for _ in 0..3 {
        // The alarm is raised by now. A key that is there proves that nothing was changed.
        let error = store.txn(&[], &[large("fill/more"), put("first", "2")]).await.unwrap_err();
        assert!(error.is_full(), "{error:?}");
    }
    assert_eq!(store.range(b"fill/").await.unwrap().entries.len(), written.len());
    assert_eq!(value(&store, "first").await, Some(key("1")));
    let opened = store.open_session(Duration::from_secs(5)).await.unwrap_err();
    assert!(opened.is_full(), "{opened:?}");
}

/// Etcd says that it is full also after it carried a transaction out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_as_full_that_was_carried_out() {
    let etcd = small();
    let store = connect(&etcd).await;
    let mut replies = Vec::new();
    // The store's size grows when it writes its pages, ten times a second, so some get in.
    for wave in 0..50 {
        let writers = (0..8).map(|n| {
            let store = store.clone();
            async move {
                let at = format!("fill/{wave}/{n}");
                let reply = store.txn(&[Compare::Absent(key(&at))], &[large(&at)]).await;
                (at, reply)
            }
        });
        replies.extend(futures_util::future::join_all(writers).await);
        if replies.iter().any(|(_, reply)| reply.is_err()) {
            break;
        }
    }
    assert!(replies.iter().any(|(_, reply)| reply.is_err()), "it is not full");
    for (at, reply) in replies {
        let is_there = value(&store, &at).await.is_some();
        match reply {
            Ok(reply) => assert!(is_there, "{at}: {reply:?}"),
            Err(Error::Ambiguous) => {}
            Err(error) => assert!(error.is_full() && !is_there, "{at}: {error:?}"),
        }
    }
}
