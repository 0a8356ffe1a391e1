//! The store file. The only product file that names redb.
//!
//! Every commit is `Durability::Immediate`. Each row has a checksum of its key and value. Every row
//! is read when the file is opened, so that damage is found at the start and not later.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "redb's error enums are non-exhaustive; an error that is not damage is unavailability"
)]

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use bytes::Bytes;
use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::StorageBackend;
use redb::TableDefinition;
use redb::backends::InMemoryBackend;

use crate::coordinator::api::Error;
use crate::coordinator::api::Event;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Session;
use crate::coordinator::api::Snapshot;
use crate::coordinator::api::Versioned;
use crate::coordinator::history::History;
use crate::coordinator::sessions::Sessions;
use crate::coordinator::transaction;
use crate::coordinator::transaction::Effect;
use crate::coordinator::transaction::Row;
use crate::coordinator::transaction::Rows;
use crate::env::forget_cached;
use crate::env::make_folder;

use super::failure;
use super::failure::Failure;
use super::failure::corrupt;
use super::failure::io;
use super::failure::unavailable;
use super::request::Answer;
use super::request::AnswerKind;
use super::request::Batch;
use super::request::Commit;
use super::request::Request;
use super::row::decode_row;
use super::row::encode_row;

/// Key to [`encode_row`]'s bytes.
const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");
/// Numbers of the store itself.
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const META_FORMAT: &str = "format";
const META_REVISION: &str = "revision";
const META_GENERATION: &str = "generation";
/// The version of the layout of rows. A file with another version is refused.
const FORMAT: u64 = 1;
/// Size of the page cache, bytes. There are few descriptors.
const CACHE_BYTES: usize = 8 << 20;

/// Opens the existing file.
type Opener = Box<dyn Fn() -> Result<redb::Database, Error> + Send + Sync>;

/// The open file. All calls block.
pub(super) struct Store {
    path: PathBuf,
    opener: Opener,
    /// `None` while the file is not open.
    database: RwLock<Option<redb::Database>>,
    history: Arc<History>,
    sessions: Sessions,
    pub(super) failed: Failure,
}

impl Store {
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        if !path.exists() {
            create(&path).map_err(|error| failure::with_free_bytes(&path, error))?;
        }
        let file = path.clone();
        let opener = move || {
            // A commit with a failed sync may have ended the last process, or may be why the file
            // is opened again. The cache shows the commit, but the device may lack parts of it.
            // Later commits that build on it could be lost with it.
            forget_cached(&file).map_err(|error| io(&error))?;
            Ok(redb::Builder::new().set_cache_size(CACHE_BYTES).open(&file)?)
        };
        Self::opened_by(path, Box::new(opener))
    }

    /// Opens a copy in memory; changes do not reach the file. The caller must ensure that no
    /// process has the file open.
    #[expect(clippy::disallowed_methods, reason = "redb's file does not go through env::Disk")]
    pub(super) fn open_copy(path: PathBuf) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(&path).map_err(|error| io(&error))?;
        file.read_to_end(&mut bytes).map_err(|error| io(&error))?;
        let memory = InMemoryBackend::new();
        let len = u64::try_from(bytes.len()).map_err(corrupt)?;
        let copied = memory.set_len(len).and_then(|()| memory.write(0, &bytes));
        copied.map_err(|error| io(&error))?;
        let builder = &mut redb::Builder::new();
        let database = builder.set_cache_size(CACHE_BYTES).create_with_backend(memory)?;
        Self::started(path, database, Box::new(|| Err(unavailable("a copy is opened once"))))
    }

    pub(super) fn opened_by(path: PathBuf, opener: Opener) -> Result<Self, Error> {
        let database = opener().map_err(|error| failure::with_free_bytes(&path, error))?;
        Self::started(path, database, opener)
    }

    fn started(path: PathBuf, database: redb::Database, opener: Opener) -> Result<Self, Error> {
        let started = start(&database, 1, |_| false);
        let Started { revision, generation, .. } =
            started.map_err(|error| failure::with_free_bytes(&path, error))?;
        Ok(Self {
            path,
            opener,
            database: RwLock::new(Some(database)),
            history: Arc::new(History::new(revision)),
            sessions: Sessions::new(generation),
            failed: Failure::default(),
        })
    }

    /// Opens the file again after it failed, and verifies it as at a start. Open sessions stay
    /// open. Returns the revision of the file.
    ///
    /// # Errors
    /// The errors of a start. The store stays failed.
    pub(super) fn reopen(&self, now: Duration) -> Result<Revision, Error> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // Closed first, because it holds the lock of the file.
        *database = None;
        let opened = (self.opener)().and_then(|opened| {
            let keep = |session| self.sessions.is_open(now, session);
            start(&opened, 0, keep).map(|started| (opened, started))
        });
        let (opened, Started { found, revision, .. }) =
            opened.map_err(|error| self.failed.tried_again(&self.path, error))?;
        // The failed commit may have been applied, and watches do not have its changes.
        self.history.restart(revision);
        *database = Some(opened);
        if self.failed.clear().is_some_and(|refusal| !refusal.is_full()) {
            let path = self.path.display();
            tracing::info!(%path, "the coordinator's file is open again");
        }
        Ok(found)
    }

    /// Runs `work` on the database unless it has failed. After an I/O error redb refuses further
    /// work, so the store counts as failed.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&redb::Database) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(refusal) = self.failure() {
            return Err(refusal);
        }
        let database = database.as_ref().ok_or_else(|| unavailable("its file is not open"))?;
        work(database).map_err(|error| match error {
            Error::Unavailable { .. } => {
                self.fail(error.clone());
                self.failure().unwrap_or(error)
            }
            Error::Ambiguous => {
                self.fail(error.clone());
                error
            }
            Error::Compacted | Error::SessionEnded | Error::Corrupt { .. } => error,
        })
    }

    /// The error of all calls while the file cannot be used.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.get()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn history(&self) -> &Arc<History> {
        &self.history
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        self.with(|database| {
            let txn = database.begin_read()?;
            let table = txn.open_table(ROWS)?;
            let Some(stored) = table.get(key)? else { return Ok(None) };
            Ok(Some(versioned(decode_row(key, stored.value())?)))
        })
    }

    pub(super) fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        self.with(|database| {
            let txn = database.begin_read()?;
            let revision = Revision(meta(&txn.open_table(META)?, META_REVISION)?);
            let mut entries = Vec::new();
            for entry in txn.open_table(ROWS)?.range(prefix..)? {
                let (key, stored) = entry?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                let row = decode_row(key.value(), stored.value())?;
                entries.push((Bytes::copy_from_slice(key.value()), versioned(row)));
            }
            Ok(Snapshot { revision, entries })
        })
    }

    pub(super) fn apply(
        &self,
        database: &redb::Database,
        now: Duration,
        batch: Batch<'_>,
    ) -> Result<Vec<Event>, Error> {
        let Batch { requests, answers, commit } = batch;
        let mut events = Vec::new();
        let mut txn = database.begin_write()?;
        txn.set_durability(redb::Durability::Immediate).map_err(unavailable)?;
        {
            let mut meta_table = txn.open_table(META)?;
            let mut rows = Table(txn.open_table(ROWS)?);
            let before = Revision(meta(&meta_table, META_REVISION)?);
            let mut revision = before;
            for request in requests {
                let (of, reply, applied) = match request {
                    Request::Open { ttl, reply } => {
                        // The session of a cancelled caller expires.
                        reply.send(self.sessions.open(now, ttl)).ok();
                        continue;
                    }
                    Request::End { session, reply } => {
                        self.sessions.close(session);
                        (
                            AnswerKind::End,
                            reply,
                            transaction::end_session(&mut rows, revision, session),
                        )
                    }
                    Request::Txn { when, then, reply } => {
                        if !transaction::sessions_of(&then).all(|s| self.sessions.is_open(now, s)) {
                            let what = Err(Error::SessionEnded);
                            answers.push(Answer { to: reply, of: AnswerKind::Txn, what });
                            continue;
                        }
                        (
                            AnswerKind::Txn,
                            Some(reply),
                            transaction::apply(&mut rows, revision, &when, &then),
                        )
                    }
                };
                match applied {
                    Ok(Effect { reply: answer, revision: after, events: changes }) => {
                        revision = after;
                        events.extend(changes);
                        answers.extend(reply.map(|to| Answer { to, of, what: Ok(answer) }));
                    }
                    Err(error) => {
                        answers.extend(reply.map(|to| Answer { to, of, what: Err(error.clone()) }));
                        return Err(error);
                    }
                }
            }
            if revision == before {
                // No row changed. Dropping the transaction aborts it and saves the sync.
                return Ok(events);
            }
            meta_table.insert(META_REVISION, revision.0)?;
            *commit = Some(Commit { before, after: revision });
        }
        txn.commit().map_err(|error| {
            self.fail(error.into());
            Error::Ambiguous
        })?;
        Ok(events)
    }

    /// Makes all calls fail until the file is opened again.
    pub(super) fn fail(&self, error: Error) {
        self.failed.set(&self.path, error);
    }
}

/// Makes an empty store under a temporary name first, so that a crash does not leave an incomplete
/// file under the real name.
#[expect(clippy::disallowed_methods, reason = "redb opens its file itself, not through env::Disk")]
fn create(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let fresh = path.with_extension("new");
    make_folder(folder).map_err(|error| io(&error))?;
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(io(&error));
        }
        Ok(()) | Err(_) => {}
    }
    let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(&fresh)?;
    let txn = database.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_REVISION, 0)?;
        meta.insert(META_GENERATION, 0)?;
        txn.open_table(ROWS)?;
    }
    txn.commit()?;
    drop(database);
    // For a durable name: sync the file, rename it, sync the folder.
    std::fs::File::open(&fresh).and_then(|file| file.sync_all()).map_err(|error| io(&error))?;
    std::fs::rename(&fresh, path).map_err(|error| io(&error))?;
    std::fs::File::open(folder).and_then(|file| file.sync_all()).map_err(|error| io(&error))
}

/// The state of a file when it was opened, and after its sessions were ended.
struct Started {
    /// The revision when it was opened.
    found: Revision,
    revision: Revision,
    generation: u32,
}

/// Verifies every row, ends all sessions except those to keep, and raises the generation. This
/// commit also makes the found rows durable, even if the sync of an earlier commit had failed.
fn start(
    database: &redb::Database,
    raise: u32,
    keep: impl Fn(Session) -> bool,
) -> Result<Started, Error> {
    let mut txn = database.begin_write()?;
    txn.set_durability(redb::Durability::Immediate).map_err(unavailable)?;
    let started = {
        let mut meta_table = txn.open_table(META)?;
        let format = meta(&meta_table, META_FORMAT)?;
        if format != FORMAT {
            let reason = format!(
                "layout {format}, this program knows {FORMAT}: use the version that wrote it"
            );
            return Err(Error::Corrupt { reason });
        }
        let found = Revision(meta(&meta_table, META_REVISION)?);
        let mut revision = found;
        let generation = u32::try_from(meta(&meta_table, META_GENERATION)?).map_err(corrupt)?;
        let generation =
            generation.checked_add(raise).ok_or_else(|| corrupt("generations ran out"))?;
        let mut rows = Table(txn.open_table(ROWS)?);
        for session in rows.verify(revision)?.into_iter().filter(|session| !keep(*session)) {
            revision = transaction::end_session(&mut rows, revision, session)?.revision;
        }
        meta_table.insert(META_REVISION, revision.0)?;
        meta_table.insert(META_GENERATION, u64::from(generation))?;
        Started { found, revision, generation }
    };
    txn.commit()?;
    Ok(started)
}

fn meta(table: &impl ReadableTable<&'static str, u64>, key: &str) -> Result<u64, Error> {
    let stored = table.get(key)?.ok_or_else(|| corrupt(format!("{key} is missing")))?;
    Ok(stored.value())
}

/// The rows inside a write transaction.
struct Table<'txn>(redb::Table<'txn, &'static [u8], &'static [u8]>);

impl Table<'_> {
    /// Verifies every row and returns the sessions with which rows were written.
    fn verify(&self, latest: Revision) -> Result<Vec<Session>, Error> {
        let mut sessions = BTreeMap::new();
        for entry in self.0.iter()? {
            let (key, stored) = entry?;
            let row = decode_row(key.value(), stored.value())?;
            if row.mod_revision > latest {
                return Err(corrupt(format!(
                    "a row of revision {} beyond {}",
                    row.mod_revision.0, latest.0
                )));
            }
            sessions.extend(row.session.map(|session| (session, ())));
        }
        Ok(sessions.into_keys().collect())
    }
}

impl Rows for Table<'_> {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Row>, Error> {
        let Some(stored) = self.0.get(key)? else { return Ok(None) };
        decode_row(key, stored.value()).map(Some)
    }

    fn put(&mut self, key: &Bytes, row: Row) -> Result<(), Error> {
        self.0.insert(&key[..], &encode_row(key, &row)[..])?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.0.remove(key)?.is_some())
    }

    fn keys_of(&self, session: Session) -> Result<Vec<Bytes>, Error> {
        let mut keys = Vec::new();
        for entry in self.0.iter()? {
            let (key, stored) = entry?;
            if decode_row(key.value(), stored.value())?.session == Some(session) {
                keys.push(Bytes::copy_from_slice(key.value()));
            }
        }
        Ok(keys)
    }
}

fn versioned(row: Row) -> Versioned {
    Versioned { value: row.value, mod_revision: row.mod_revision }
}

impl From<redb::StorageError> for Error {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Corrupted(reason) => Self::Corrupt { reason },
            // The file is empty or ends too early.
            redb::StorageError::Io(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
            {
                corrupt(error)
            }
            redb::StorageError::Io(error) => io(&error),
            other => unavailable(other),
        }
    }
}

impl From<redb::DatabaseError> for Error {
    fn from(error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::Storage(error) => error.into(),
            redb::DatabaseError::DatabaseAlreadyOpen => {
                unavailable("another process has the data directory open")
            }
            redb::DatabaseError::UpgradeRequired(_) => corrupt(error),
            other => unavailable(other),
        }
    }
}

impl From<redb::TableError> for Error {
    fn from(error: redb::TableError) -> Self {
        match error {
            redb::TableError::Storage(error) => error.into(),
            // This program did not write a store without this table, or with another type of it.
            other => corrupt(other),
        }
    }
}

impl From<redb::TransactionError> for Error {
    fn from(error: redb::TransactionError) -> Self {
        match error {
            redb::TransactionError::Storage(error) => error.into(),
            other => unavailable(other),
        }
    }
}

impl From<redb::CommitError> for Error {
    fn from(error: redb::CommitError) -> Self {
        match error {
            redb::CommitError::Storage(error) => error.into(),
            other => unavailable(other),
        }
    }
}
