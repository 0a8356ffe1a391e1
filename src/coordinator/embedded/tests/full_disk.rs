//! Commits on a full disk, after which the file opens again immediately.

use super::small_disk::assert_names_file_and_free_bytes;
use super::*;
use crate::env::Clock;
use crate::env::OsClock;
use crate::telemetry::CapturedLog;

/// A change for which there is no room.
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

/// An open file with rows on a disk that can be made full.
async fn with_rows() -> (Fixture, Arc<Room>, EmbeddedCoordinator) {
    let fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    for ops in rows() {
        commit(&coordinator, &[], &ops).await;
    }
    (fixture, room, coordinator)
}

/// An open file on a full disk, and a session with a row.
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
fn a_session_whose_end_found_no_room_is_not_reported_as_open() {
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

/// Each try on a full disk would read the whole file, and all calls would wait for that.
#[tokio::test]
async fn a_full_disk_is_not_tried_again_before_a_pause_and_reads_succeed_meanwhile() {
    let (fixture, room, coordinator) = with_rows().await;
    let opened = room.opened();
    room.set(Space::Little);
    for number in 0..30 {
        let refused = coordinator.txn(&[], &[large()]).await.unwrap_err();
        assert!(refused.is_full(), "{number}: {refused:?}");
        assert_names_file_and_free_bytes(&refused.to_string(), &fixture.path());
        assert_eq!(value(&coordinator, "row 0").await, Some(key("1")), "reads succeed");
    }
    assert_eq!(room.opened(), opened + 1);
    // A transaction without changes is not refused.
    commit(&coordinator, &[], &[]).await;

    fixture.clock.advance(REOPEN_PAUSE);
    assert!(coordinator.txn(&[], &[large()]).await.unwrap_err().is_full());
    assert_eq!(room.opened(), opened + 2, "it is tried");
    room.set(Space::Enough);
    writer_is_done(&coordinator).await;
    // The second pause is longer.
    fixture.clock.advance(REOPEN_PAUSE);
    let refused = coordinator.txn(&[], &[put("early", "1")]).await.unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    fixture.clock.advance(REOPEN_PAUSE);
    commit(&coordinator, &[], &[put("after", "1")]).await;
    assert_eq!(value(&coordinator, "early").await, None, "refused changes nothing");
}

/// A change that is larger than redb's cache is written before the commit.
#[tokio::test]
async fn a_change_that_finds_no_room_before_its_commit_is_not_tried_again_before_a_pause() {
    let (_fixture, room, coordinator) = with_rows().await;
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

/// The number of log lines about the file.
fn lines_about_the_file(log: &CapturedLog, level: &str) -> usize {
    log.lines_with(&[level, "the coordinator's file"])
}

/// Waits for the writer. An answer may arrive before the writer has begun the pause.
async fn writer_is_done(coordinator: &EmbeddedCoordinator) {
    drop(coordinator.txn(&[], &[]).await);
}

/// Makes large changes, ten per second. Returns how many succeeded.
async fn change_steadily(
    fixture: &Fixture,
    coordinator: &EmbeddedCoordinator,
    seconds: u32,
) -> usize {
    let mut done = 0;
    for _ in 0..seconds * 10 {
        done += usize::from(coordinator.txn(&[], &[large()]).await.is_ok());
        writer_is_done(coordinator).await;
        fixture.clock.advance(Duration::from_millis(100));
        tokio::task::yield_now().await;
    }
    done
}

#[tokio::test]
async fn a_full_disk_is_tried_more_and_more_rarely_and_logged_once_a_minute() {
    for space in [Space::Little, Space::None] {
        let log = CapturedLog::default();
        let _lines = log.begin();
        let (fixture, room, coordinator) = with_rows().await;
        let opened = room.opened();
        room.set(space);
        assert_eq!(change_steadily(&fixture, &coordinator, 50).await, 0);
        let tries = room.opened() - opened;
        assert!((8..30).contains(&tries), "{space:?}: {tries} in 50 s");
        let full = ["ERROR", "free some space", FILE_NAME, "bytes are free"];
        assert_eq!(log.lines_with(&full), 1, "{}", log.text());
        assert_eq!(
            lines_about_the_file(&log, "ERROR")
                + lines_about_the_file(&log, "WARN")
                + lines_about_the_file(&log, "INFO"),
            1
        );
        assert_eq!(change_steadily(&fixture, &coordinator, 170).await, 0);
        assert_eq!(log.lines_with(&full), 4, "once a minute: {}", log.text());

        room.set(Space::Enough);
        let done = change_steadily(&fixture, &coordinator, 20).await;
        assert!(done > 140, "{space:?}: noticed within some seconds: {done} of 200 done");
        assert_eq!(lines_about_the_file(&log, "INFO"), 1, "{space:?}: {}", log.text());
        assert_eq!(
            lines_about_the_file(&log, "ERROR") + lines_about_the_file(&log, "WARN"),
            4,
            "{}",
            log.text()
        );
    }
}

/// As on a real disk, a change of few pages finds room.
#[tokio::test]
async fn small_changes_succeed_beside_those_without_room_and_do_not_log_room_again() {
    let log = CapturedLog::default();
    let _lines = log.begin();
    let (fixture, room, coordinator) = with_rows().await;
    room.set(Space::Little);
    let mut small = 0;
    for number in 0..50 {
        assert!(coordinator.txn(&[], &[large()]).await.is_err());
        writer_is_done(&coordinator).await;
        fixture.clock.advance(REOPEN_PAUSE);
        let done = coordinator.txn(&[], &[put("small", &format!("{number}"))]).await;
        small += usize::from(done.is_ok());
    }
    assert_eq!(small, 50);
    assert_eq!(
        (lines_about_the_file(&log, "ERROR"), lines_about_the_file(&log, "INFO")),
        (1, 0),
        "{}",
        log.text()
    );
    // The line is logged without a further change. The writer may still be busy with the last.
    let logged = async {
        while lines_about_the_file(&log, "INFO") == 0 {
            fixture.clock.advance(REOPEN_PAUSE);
            OsClock::new().sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), logged).await.expect("the log says so");
    assert_eq!(
        (lines_about_the_file(&log, "ERROR"), lines_about_the_file(&log, "INFO")),
        (1, 1),
        "{}",
        log.text()
    );
}

/// The end of a session changes rows too.
#[tokio::test]
async fn sessions_end_after_the_pause() {
    let (fixture, room, coordinator) = with_rows().await;
    let session = coordinator.open_session(Duration::from_secs(60)).await.unwrap();
    let short = coordinator.open_session(REOPEN_PAUSE / 2).await.unwrap();
    let held = [
        Op::PutWithSession(key("held"), key("1"), session),
        Op::PutWithSession(key("short"), key("1"), short),
    ];
    commit(&coordinator, &[], &held).await;
    room.set(Space::Little);
    let at = coordinator.range(b"").await.unwrap().revision;
    assert!(coordinator.txn(&[], &[large()]).await.unwrap_err().is_full());
    writer_is_done(&coordinator).await;
    let opened = room.opened();
    let refused = coordinator.close_session(session).await.unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    coordinator.keep_alive(session).await.expect("it is open");
    fixture.clock.advance(REOPEN_PAUSE * 3 / 4);
    // Two requests, so that the writer has run once after the clock moved.
    for _ in 0..2 {
        assert!(coordinator.txn(&[], &[large()]).await.unwrap_err().is_full());
    }
    assert_eq!(coordinator.range(b"").await.unwrap().revision, at, "nothing was written");
    let late = coordinator.txn(&[], &[Op::PutWithSession(key("late"), key("1"), short)]).await;
    assert!(late.is_err(), "it is over: {late:?}");
    assert_eq!(room.opened(), opened);

    fixture.clock.advance(REOPEN_PAUSE);
    commit(&coordinator, &[], &[put("after", "1")]).await;
    assert_eq!(value(&coordinator, "short").await, None);
    coordinator.close_session(session).await.unwrap();
    assert_eq!(value(&coordinator, "held").await, None);
}
