#![expect(clippy::disallowed_methods, reason = "damages the store's file")]

use std::sync::Arc;
use std::sync::Mutex;

use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use super::*;
use crate::coordinator::conformance;
use crate::coordinator::conformance::ManualClock;
use crate::coordinator::conformance::commit;
use crate::coordinator::conformance::key;
use crate::coordinator::conformance::put;
use crate::coordinator::conformance::value;

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
    conformance::suite(Arc::new(coordinator), &fixture.clock).await;
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

/// Asserts that a text for the operator names the file and the free bytes.
fn assert_names_file_and_free_bytes(text: &str, path: &Path) {
    let free = text.split(" bytes are free").next().and_then(|before| before.rsplit(' ').next());
    let free: Option<u64> = free.and_then(|number| number.parse().ok());
    assert!(free.is_some_and(|free| free > 0), "the free bytes of this machine: {text}");
    assert!(text.contains("full") && text.contains(&path.display().to_string()), "{text}");
}

/// The longest write that finds room in [`Space::Little`], bytes.
const LITTLE: u64 = 256 << 10;
/// ENOSPC.
const NO_SPACE: i32 = 28;

/// The room on the disk of the file. As on a real disk, reads and changes of the file's length
/// always succeed, since they take no block.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<State>);

/// Which writes find room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Space {
    /// All writes.
    #[default]
    Enough,
    /// Writes that end before the end of the last byte written.
    Written,
    /// Writes of a few rows.
    Little,
    /// No write: on some file systems overwriting also takes new blocks.
    None,
}

#[derive(Debug, Default)]
struct State {
    space: Space,
    /// The end of the last byte written.
    mark: u64,
    /// How often the file was opened.
    opened: usize,
}

impl Room {
    /// How often the file was opened.
    fn opened(&self) -> usize {
        self.0.lock().unwrap().opened
    }

    /// Changes which writes find room.
    pub(crate) fn set(&self, space: Space) {
        self.0.lock().unwrap().space = space;
    }

    fn take(&self, offset: u64, len: u64) -> std::io::Result<()> {
        let end = offset + len;
        let mut state = self.0.lock().unwrap();
        let is_full = match state.space {
            Space::Enough => false,
            Space::Written => end > state.mark,
            Space::Little => len > LITTLE,
            Space::None => true,
        };
        if is_full {
            return Err(std::io::Error::from_raw_os_error(NO_SPACE));
        }
        state.mark = state.mark.max(end);
        Ok(())
    }
}

/// A file on such a disk.
#[derive(Debug)]
struct Small {
    file: redb::backends::FileBackend,
    room: Arc<Room>,
}

impl redb::StorageBackend for Small {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.room.take(offset, u64::try_from(data.len()).unwrap())?;
        self.file.write(offset, data)
    }
}

impl EmbeddedCoordinator {
    /// As [`Self::open`], on a disk with this much room.
    pub(crate) async fn open_small(
        path: &Path,
        env: &Env,
        room: &Arc<Room>,
    ) -> Result<Self, Error> {
        if !path.exists() {
            drop(Store::open(path.to_owned())?);
        }
        let (path, room) = (path.to_owned(), Arc::clone(room));
        Self::opened(env, move || Store::open_small(&path, room)).await
    }
}

impl Store {
    /// As [`Self::open`], for an existing file on a disk with this much room.
    fn open_small(path: &Path, room: Arc<Room>) -> Result<Self, Error> {
        let file = path.to_owned();
        let opener = move || {
            room.0.lock().unwrap().opened += 1;
            let opened = std::fs::OpenOptions::new().read(true).write(true).open(&file);
            let opened = redb::backends::FileBackend::new(opened.map_err(unavailable)?)?;
            let backend = Small { file: opened, room: Arc::clone(&room) };
            let builder = &mut redb::Builder::new();
            Ok(builder.set_cache_size(8 << 20).create_with_backend(backend)?)
        };
        Self::opened_by(path.to_owned(), Box::new(opener))
    }
}

impl Fixture {
    /// As [`Self::open`], on a disk with this much room.
    async fn open_small(&self, room: &Arc<Room>) -> Result<EmbeddedCoordinator, Error> {
        EmbeddedCoordinator::open_small(&self.path(), &self.env, room).await
    }

    /// Adds rows to a file on a full disk. Returns the rows that were acknowledged.
    async fn fill_up(&self, coordinator: &EmbeddedCoordinator) -> Vec<String> {
        let mut acknowledged = Vec::new();
        for number in 0..60 {
            let name = format!("late {number}");
            match coordinator.txn(&[], &[put(&name, &"x".repeat(10_000))]).await {
                Ok(_) => acknowledged.push(name),
                Err(Error::Ambiguous) => {}
                Err(error @ Error::Unavailable { .. }) => {
                    assert_names_file_and_free_bytes(&error.to_string(), &self.path());
                    assert!(error.is_full(), "{error:?}");
                }
                Err(error) => panic!("{error:?}"),
            }
            self.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        acknowledged
    }
}

#[tokio::test]
async fn a_full_disk_loses_no_row_and_the_error_has_the_free_bytes() {
    let fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    for number in 0..20 {
        commit(&coordinator, &[], &[put(&format!("row {number}"), "1")]).await;
    }
    room.set(Space::Written);
    let acknowledged = fixture.fill_up(&coordinator).await;
    assert!(!acknowledged.is_empty(), "there was room below the mark");
    let refused = coordinator.txn(&[], &[put("refused", "1")]).await.unwrap_err();
    assert!(refused.is_full(), "still: {refused:?}");

    room.set(Space::Enough);
    recovered(&fixture, &coordinator).await;
    for number in 0..20 {
        assert_eq!(value(&coordinator, &format!("row {number}")).await, Some(key("1")));
    }
    for name in acknowledged {
        assert!(value(&coordinator, &name).await.is_some(), "{name}");
    }
    assert_eq!(value(&coordinator, "refused").await, None, "refused changes nothing");
    commit(&coordinator, &[], &[put("after", "1")]).await;
}

#[tokio::test]
async fn a_start_on_a_full_disk_is_refused_with_the_free_bytes_and_works_once_there_is_room() {
    let mut fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    commit(&coordinator, &[], &[put("row", "1")]).await;
    drop(coordinator);
    fixture.env.tasks.shutdown().await;

    fixture.env = conformance::env(&fixture.clock, 1);
    room.set(Space::None);
    let refused = fixture.open_small(&room).await.unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    assert_names_file_and_free_bytes(
        &format!("{}: {refused}", fixture.path().display()),
        &fixture.path(),
    );
    room.set(Space::Enough);
    let coordinator = fixture.open_small(&room).await.unwrap();
    assert_eq!(value(&coordinator, "row").await, Some(key("1")));
}

/// The file opens again although the disk is full, and shows whether the commit was applied.
#[tokio::test]
async fn a_commit_without_room_is_refused_for_sure_when_the_file_opens_again() {
    let fixture = Fixture::new();
    let room = Arc::new(Room::default());
    let coordinator = fixture.open_small(&room).await.unwrap();
    for number in 0..20 {
        commit(&coordinator, &[], &[put(&format!("row {number}"), "1")]).await;
    }
    let at = coordinator.range(b"").await.unwrap().revision;
    room.set(Space::Written);
    let large = put("large", &"x".repeat(1 << 20));
    let refused = coordinator.txn(&[], &[large]).await.unwrap_err();
    assert!(refused.is_full(), "{refused:?}");
    assert_names_file_and_free_bytes(&refused.to_string(), &fixture.path());
    assert_eq!(value(&coordinator, "large").await, None, "it is open again");
    assert_eq!(coordinator.range(b"").await.unwrap().revision, at);
    room.set(Space::Enough);
    // This request is answered after the pause has begun.
    commit(&coordinator, &[], &[]).await;
    fixture.clock.advance(REOPEN_PAUSE);
    let next = commit(&coordinator, &[], &[put("after", "1")]).await;
    assert_eq!(next, Revision(at.0 + 1));
}

mod full_disk;
