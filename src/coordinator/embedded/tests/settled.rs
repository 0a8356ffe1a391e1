//! Commits without room, after which the file opens again at once.

use super::*;
use crate::telemetry::CapturedLog;

/// More than there is room for.
fn large() -> Op {
    put("large", &"x".repeat(1 << 20))
}

fn txn(then: Vec<Op>) -> (Request, oneshot::Receiver<Result<TxnReply, Error>>) {
    let (reply, answer) = oneshot::channel();
    (Request::Txn { when: Vec::new(), then, reply }, answer)
}

/// One transaction for each row.
fn rows() -> Vec<Vec<Op>> {
    (0..20).map(|number| vec![put(&format!("row {number}"), "1")]).collect()
}

/// An open file on a disk that is full from now on, and a session with a row.
fn full(fixture: &Fixture) -> (Store, Session) {
    let room = Arc::new(Room::default());
    drop(Store::open(fixture.path()).unwrap());
    let store = Store::open_small(&fixture.path(), Arc::clone(&room)).unwrap();
    let session = store.sessions().open(Duration::ZERO, Duration::from_secs(60));
    let held = Op::PutWithSession(key("held"), key("1"), session);
    for ops in rows().into_iter().chain([vec![held]]) {
        let (request, answer) = txn(ops);
        store.commit(Duration::ZERO, vec![request]);
        answer.blocking_recv().unwrap().unwrap();
    }
    room.set(Space::Little);
    (store, session)
}

#[test]
fn a_file_that_opens_again_at_once_is_logged_as_open() {
    let log = CapturedLog::default();
    let _lines = log.begin();
    let fixture = Fixture::new();
    let (store, _) = full(&fixture);
    let (request, answer) = txn(vec![large()]);
    store.commit(Duration::ZERO, vec![request]);
    let refused = answer.blocking_recv().unwrap().unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    assert!(store.failure().is_none());
    for line in ["ERROR the coordinator's file failed", "INFO the coordinator's file is open again"]
    {
        let (level, what) = line.split_once(' ').unwrap();
        assert_eq!(log.lines_with(&[level, what]), 1, "{line}: {}", log.text());
    }
}

#[test]
fn a_session_whose_end_found_no_room_is_not_said_to_be_open() {
    let fixture = Fixture::new();
    let (store, session) = full(&fixture);
    let (reply, ended) = oneshot::channel();
    let (request, answer) = txn(vec![large()]);
    store.commit(Duration::ZERO, vec![Request::End { session, reply: Some(reply) }, request]);
    assert!(answer.blocking_recv().unwrap().unwrap_err().is_full());
    let ended = ended.blocking_recv().unwrap();
    assert!(!store.sessions().is_open(Duration::ZERO, session));
    assert_eq!(store.get(b"held").unwrap(), None, "it has ended");
    assert!(matches!(ended, Err(Error::Ambiguous)), "{ended:?}");
}

/// Each try without room would read the whole file, and everybody would wait for that.
#[tokio::test]
async fn a_full_disk_is_not_tried_again_before_a_pause_and_is_read_meanwhile() {
    let fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    for ops in rows() {
        commit(&coordinator, &[], &ops).await;
    }
    let session = coordinator.open_session(Duration::from_secs(60)).await.unwrap();
    let held = Op::PutWithSession(key("held"), key("1"), session);
    commit(&coordinator, &[], &[held]).await;
    let opened = room.opened();
    room.set(Space::Little);
    for number in 0..30 {
        let refused = coordinator.txn(&[], &[large()]).await.unwrap_err();
        assert!(refused.is_full(), "{number}: {refused:?}");
        assert_told(&refused.to_string(), &fixture.path());
        assert_eq!(value(&coordinator, "row 0").await, Some(key("1")), "reads go on");
    }
    assert_eq!(room.opened(), opened + 1);
    // What changes no row, and the end of a session, needs no pause.
    commit(&coordinator, &[], &[]).await;
    coordinator.close_session(session).await.unwrap();
    assert_eq!(value(&coordinator, "held").await, None);

    fixture.clock.advance(REOPEN_PAUSE);
    assert!(coordinator.txn(&[], &[large()]).await.unwrap_err().is_full());
    assert_eq!(room.opened(), opened + 2, "it is tried");
    room.set(Space::Enough);
    let refused = coordinator.txn(&[], &[put("early", "1")]).await.unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    fixture.clock.advance(REOPEN_PAUSE);
    commit(&coordinator, &[], &[put("after", "1")]).await;
    assert_eq!(value(&coordinator, "early").await, None, "refused changes nothing");
}

/// More than the library keeps in memory: it is written before the commit.
#[tokio::test]
async fn a_change_that_finds_no_room_before_its_commit_is_not_tried_again_before_a_pause() {
    let fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    for ops in rows() {
        commit(&coordinator, &[], &ops).await;
    }
    let opened = room.opened();
    room.set(Space::Little);
    let huge: Vec<Op> =
        (0..30).map(|number| put(&format!("huge {number}"), &"x".repeat(1 << 20))).collect();
    for number in 0..10 {
        let refused = coordinator.txn(&[], &huge).await.unwrap_err();
        assert!(refused.is_full(), "{number}: {refused:?}");
    }
    assert_eq!(room.opened(), opened + 1);
}
