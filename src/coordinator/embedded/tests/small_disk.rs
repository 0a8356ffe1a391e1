//! A disk with little room: what is refused on it, and what is kept.

use std::path::Path;
use std::sync::Mutex;

use super::*;

/// Asserts that a text for the operator names the file and the free bytes.
pub(super) fn assert_names_file_and_free_bytes(text: &str, path: &Path) {
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
    pub(super) fn opened(&self) -> usize {
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
    pub(super) fn open_small(path: &Path, room: Arc<Room>) -> Result<Self, Error> {
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
    pub(super) async fn open_small(&self, room: &Arc<Room>) -> Result<EmbeddedCoordinator, Error> {
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
