//! A file that fails for a while: the coordinator goes on once it does not.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use super::*;

/// A file that fails while `broken` is set.
#[derive(Debug)]
struct Failing {
    file: redb::backends::FileBackend,
    broken: Arc<AtomicBool>,
}

impl Failing {
    fn check(&self) -> std::io::Result<()> {
        let broken = self.broken.load(Ordering::Relaxed);
        if broken { Err(std::io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl redb::StorageBackend for Failing {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.check()?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }
}

impl Fixture {
    /// As [`Self::open`], on a file that fails while `broken` is set. Counts how often the file is
    /// opened.
    async fn open_failing(
        &self,
        broken: &Arc<AtomicBool>,
        opened: &Arc<AtomicUsize>,
    ) -> EmbeddedCoordinator {
        drop(Store::open(self.path()).unwrap());
        let (path, broken, opened) = (self.path(), Arc::clone(broken), Arc::clone(opened));
        let opener = move || {
            opened.fetch_add(1, Ordering::Relaxed);
            let file = std::fs::OpenOptions::new().read(true).write(true).open(&path);
            let file = redb::backends::FileBackend::new(file.map_err(unavailable)?)?;
            let backend = Failing { file, broken: Arc::clone(&broken) };
            Ok(redb::Builder::new().create_with_backend(backend)?)
        };
        let path = self.path();
        let open = move || Store::opened_by(path, Box::new(opener));
        EmbeddedCoordinator::opened(&self.env, open).await.unwrap()
    }
}

#[tokio::test]
async fn embedded_goes_on_once_its_file_can_be_written_again() {
    let fixture = Fixture::new();
    let (broken, opened) = (Arc::default(), Arc::default());
    let coordinator = fixture.open_failing(&broken, &opened).await;
    let session = coordinator.open_session(Duration::from_secs(3600)).await.unwrap();
    let ops = [Op::PutWithSession(key("node"), key("1"), session), put("stays", "1")];
    let at = commit(&coordinator, &[], &ops).await;
    let mut watch = coordinator.watch(b"", at).await.unwrap();

    broken.store(true, Ordering::Relaxed);
    let lost = coordinator.txn(&[], &[put("lost", "1")]).await;
    assert!(matches!(lost, Err(Error::Ambiguous | Error::Unavailable { .. })), "{lost:?}");
    for number in 0..50 {
        let refused = coordinator.txn(&[], &[put("refused", "1")]).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{number}: {refused:?}");
        let refused = coordinator.get(b"stays").await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{number}: {refused:?}");
        fixture.clock.advance(Duration::from_millis(100));
        tokio::task::yield_now().await;
    }
    let tries = opened.load(Ordering::Relaxed);
    assert!((2..20).contains(&tries), "opened {tries} times in 5 s");

    broken.store(false, Ordering::Relaxed);
    recovered(&fixture, &coordinator).await;
    assert_eq!(value(&coordinator, "stays").await, Some(key("1")));
    assert_eq!(value(&coordinator, "refused").await, None, "refused changes nothing");
    assert_eq!(value(&coordinator, "node").await, Some(key("1")), "the session is open");
    coordinator.keep_alive(session).await.unwrap();
    // The change with the unknown outcome may have been applied. A watch delivers it or fails.
    let happened = value(&coordinator, "lost").await.is_some();
    match watch.next().await {
        Ok(event) => assert!(!happened && event.key == key("probe"), "{event:?}"),
        Err(error) => assert!(matches!(error, Error::Compacted), "{error:?}"),
    }
    let latest = coordinator.range(b"").await.unwrap().revision;
    let mut watch = coordinator.watch(b"", latest).await.unwrap();
    let at = commit(&coordinator, &[], &[put("after", "1")]).await;
    assert_eq!(watch.next().await.unwrap().revision, at);
}

#[tokio::test]
async fn embedded_recovers_from_any_failing_call() {
    for after_trouble in [false, true] {
        let mut fixture = Fixture::new();
        let (broken, opened) = (Arc::default(), Arc::default());
        let coordinator = fixture.open_failing(&broken, &opened).await;
        let session = coordinator.open_session(Duration::from_secs(2)).await.unwrap();
        commit(&coordinator, &[], &[Op::PutWithSession(key("node"), key("1"), session)]).await;
        for round in 0..5 {
            broken.store(true, Ordering::Relaxed);
            drop(coordinator.txn(&[], &[put("row", &format!("lost {round}"))]).await);
            // The session ends meanwhile.
            fixture.clock.advance(Duration::from_secs(3));
            tokio::task::yield_now().await;
            broken.store(false, Ordering::Relaxed);
            recovered(&fixture, &coordinator).await;
            commit(&coordinator, &[], &[put("row", &format!("{round}"))]).await;
            assert_eq!(value(&coordinator, "row").await, Some(key(&format!("{round}"))));
            assert_eq!(value(&coordinator, "node").await, None, "its session is over");
        }
        if after_trouble {
            let coordinator = fixture.restart(coordinator).await;
            assert_eq!(value(&coordinator, "row").await, Some(key("4")));
        }
    }
}
