#![expect(clippy::disallowed_methods, reason = "damages the store's file")]

mod failing;
mod full_disk;
mod small_disk;

use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::coordinator::conformance;
use crate::coordinator::conformance::ManualClock;
use crate::coordinator::conformance::commit;
use crate::coordinator::conformance::key;
use crate::coordinator::conformance::put;
use crate::coordinator::conformance::value;

pub(crate) use small_disk::{Room, Space};

struct Fixture {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    env: Env,
}

impl Fixture {
    fn new() -> Self {
        let clock = ManualClock::new();
        let env = conformance::env(&clock, 1);
        Self { folder: tempfile::tempdir().unwrap(), clock, env }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(FILE_NAME)
    }

    async fn open(&self) -> Result<EmbeddedCoordinator, Error> {
        EmbeddedCoordinator::open(&self.path(), &self.env).await
    }

    /// Stops the writer, which closes the file, and opens it again.
    async fn restart(&mut self, coordinator: EmbeddedCoordinator) -> EmbeddedCoordinator {
        drop(coordinator);
        self.env.tasks.shutdown().await;
        self.env = conformance::env(&self.clock, 1);
        self.open().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_passes_the_suite() {
    let fixture = Fixture::new();
    let coordinator = fixture.open().await.unwrap();
    conformance::suite(Arc::new(coordinator), fixture.clock.as_ref()).await;
}

#[tokio::test]
async fn embedded_keeps_rows_and_revisions_over_a_restart() {
    let mut fixture = Fixture::new();
    let coordinator = fixture.open().await.unwrap();
    let at = commit(&coordinator, &[], &[put("a", "1"), put("b", "2")]).await;
    let coordinator = fixture.restart(coordinator).await;
    let stored = coordinator.get(b"a").await.unwrap().unwrap();
    assert_eq!((stored.value, stored.mod_revision), (key("1"), at));
    assert_eq!(coordinator.range(b"").await.unwrap().revision, at);
    assert!(matches!(coordinator.watch(b"", Revision(0)).await, Err(Error::Compacted)));
    assert!(coordinator.watch(b"", at).await.is_ok());
}

#[tokio::test]
async fn embedded_open_ends_the_sessions_before() {
    let mut fixture = Fixture::new();
    let coordinator = fixture.open().await.unwrap();
    let old = coordinator.open_session(Duration::from_secs(60)).await.unwrap();
    let ops = [Op::PutWithSession(key("node"), key("1"), old), put("stays", "1")];
    let at = commit(&coordinator, &[], &ops).await;
    let coordinator = fixture.restart(coordinator).await;
    assert_eq!(value(&coordinator, "node").await, None);
    assert_eq!(value(&coordinator, "stays").await, Some(key("1")));
    assert!(coordinator.range(b"").await.unwrap().revision > at);
    let fresh = coordinator.open_session(Duration::from_secs(60)).await.unwrap();
    assert_ne!(fresh, old, "ids are not reused");
    assert!(matches!(coordinator.keep_alive(old).await, Err(Error::SessionEnded)));
}

#[tokio::test]
async fn embedded_refuses_a_second_open() {
    let fixture = Fixture::new();
    let _open = fixture.open().await.unwrap();
    let second = fixture.open().await;
    assert!(matches!(second, Err(Error::Unavailable { .. })), "{second:?}");
}

#[tokio::test]
async fn embedded_refuses_calls_after_shutdown() {
    let fixture = Fixture::new();
    let coordinator = fixture.open().await.unwrap();
    fixture.env.tasks.shutdown().await;
    let reply = coordinator.txn(&[], &[put("a", "1")]).await;
    assert!(matches!(reply, Err(Error::Unavailable { .. })), "{reply:?}");
    let session = coordinator.open_session(Duration::from_secs(1)).await;
    assert!(matches!(session, Err(Error::Unavailable { .. })), "{session:?}");
}

#[tokio::test]
async fn embedded_never_serves_a_damaged_file() {
    let mut fixture = Fixture::new();
    let mut coordinator = fixture.open().await.unwrap();
    for n in 0..40 {
        let row = put(&format!("row/{n:02}"), &format!("value {n} {}", "x".repeat(200)));
        commit(&coordinator, &[], &[row]).await;
    }
    coordinator = fixture.restart(coordinator).await;
    let good = coordinator.range(b"row/").await.unwrap();
    drop(coordinator);
    fixture.env.tasks.shutdown().await;
    let sound = std::fs::read(fixture.path()).unwrap();
    let mut refused = 0;
    for at in (0..sound.len()).filter(|at| sound[*at] != 0).step_by(97) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x10;
        std::fs::write(fixture.path(), &damaged).unwrap();
        fixture.env = conformance::env(&fixture.clock, 1);
        match fixture.open().await {
            Err(Error::Corrupt { .. } | Error::Unavailable { .. }) => refused += 1,
            Err(other) => panic!("byte {at}: {other:?}"),
            Ok(opened) => {
                let seen = opened.range(b"row/").await.unwrap();
                assert_eq!(seen.entries, good.entries, "byte {at}");
            }
        }
        fixture.env.tasks.shutdown().await;
    }
    assert!(refused > 0, "damage inside rows is noticed");
}

#[tokio::test]
async fn embedded_reports_garbage_and_truncation_as_corrupt() {
    let mut fixture = Fixture::new();
    let coordinator = fixture.open().await.unwrap();
    commit(&coordinator, &[], &[put("a", "1")]).await;
    drop(coordinator);
    fixture.env.tasks.shutdown().await;
    let sound = std::fs::read(fixture.path()).unwrap();
    let cases: [&[u8]; 4] = [b"", b"not a store", &sound[..100], &sound[..sound.len() / 2]];
    for bytes in cases {
        std::fs::write(fixture.path(), bytes).unwrap();
        fixture.env = conformance::env(&fixture.clock, 1);
        let opened = fixture.open().await;
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{} bytes: {opened:?}", bytes.len());
    }
}

/// Waits until a transaction succeeds. Returns after how many seconds.
async fn recovered(fixture: &Fixture, coordinator: &EmbeddedCoordinator) -> usize {
    for seconds in 0..60 {
        if coordinator.txn(&[], &[put("probe", &format!("{seconds}"))]).await.is_ok() {
            return seconds;
        }
        fixture.clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    panic!("it still refuses after a minute");
}
