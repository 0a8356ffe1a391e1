//! Reads, writes and removes the files that mark a directory as a backup, or as an incomplete one.
//! Layout: `api-spec/backup.md`.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::Serialize;

use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::env::LOCK_NAME;
use crate::env::make_folder;
use crate::node::files;

use super::attempt::Attempt;
use super::destination::Destination;
use super::error::BackupError;
use super::mark::Mark;
use super::mark::SUMMARY;
use super::source::Source;

/// The version of the file, and of the marks.
const VERSION: u32 = 1;

/// The summary of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of the layout.
    pub version: u32,
    /// The id of the store, as its `format` files have it.
    pub store: String,
    /// The id of the last restore of the store; none if it was never restored. A restored store has
    /// another history than the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// When it began. Everything that was acknowledged before is in it.
    pub begun: String,
    /// Extents in it.
    pub extents: usize,
    /// Bytes that this backup copied. Earlier backups had copied the others.
    pub copied_bytes: u64,
}

impl Summary {
    /// The summary of a backup that begins now.
    pub(super) async fn new(from: &Source, env: &Env) -> Result<Self, BackupError> {
        Ok(Self {
            version: VERSION,
            store: from.store_id(),
            restored: from.restored_id().await?,
            begun: env.clock.now().to_iso_millis(),
            extents: 0,
            copied_bytes: 0,
        })
    }

    fn is_of_same_store(&self, other: &Self) -> bool {
        self.store == other.store && self.restored == other.restored
    }
}

/// Reads the summary of a complete backup.
pub(super) fn complete(backup: &Path) -> Result<Summary, BackupError> {
    if read(&backup.join(Mark::Backup.name()))?.is_some() {
        return Err(BackupError::Incomplete(backup.to_owned()));
    }
    read(&backup.join(SUMMARY))?.ok_or_else(|| BackupError::Incomplete(backup.to_owned()))
}

/// Refuses a directory that holds something else. Nothing is changed.
pub(super) fn may_become(to: Destination<'_>, summary: &Summary) -> Result<(), BackupError> {
    let Destination { path: to, mark } = to;
    let mut before = read(&to.join(mark.name()))?;
    if before.is_none() && mark == Mark::Backup {
        before = read(&to.join(SUMMARY))?;
    }
    match before {
        Some(before) if !before.is_of_same_store(summary) => {
            Err(BackupError::OtherStore(to.to_owned()))
        }
        None if !is_empty(to)? => Err(match mark {
            Mark::Backup => BackupError::NotEmpty(to.to_owned()),
            Mark::Restore => BackupError::NotNew(to.to_owned()),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Marks a directory as incomplete, durably, and creates it if necessary. The caller has locked it,
/// and knows what to copy: a backup in the directory is not valid from now on.
pub(super) fn begin(
    to: Destination<'_>,
    summary: &Summary,
    attempt: &Attempt,
) -> Result<(), BackupError> {
    // Another process may have completed it before it was locked.
    may_become(to, summary)?;
    let Destination { path: to, mark } = to;
    attempt.go_on()?;
    make_folder(to).map_err(|error| failed(to, error))?;
    attempt.go_on()?;
    // The mark first: without both files the directory would look like something else.
    write(&to.join(mark.name()), summary)?;
    attempt.go_on()?;
    remove(&to.join(SUMMARY))?;
    attempt.go_on()?;
    // The old rows do not match the extents that are copied next.
    remove(&to.join(FILE_NAME))
}

/// Removes the mark of a complete directory, durably.
pub(super) fn end(
    to: Destination<'_>,
    summary: &Summary,
    attempt: &Attempt,
) -> Result<(), BackupError> {
    let Destination { path: to, mark } = to;
    if mark == Mark::Backup {
        write(&to.join(SUMMARY), summary)?;
        attempt.go_on()?;
    }
    remove(&to.join(mark.name()))
}

/// Whether a directory is empty or missing. The lock file and an incomplete mark do not count.
fn is_empty(folder: &Path) -> Result<bool, BackupError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found.map_err(|error| failed(folder, error))?,
    };
    for entry in entries {
        let name = entry.map_err(|error| failed(folder, error))?.file_name();
        let is_mark = Path::new(&name).extension().is_some_and(|ending| ending == "new");
        if !is_mark && name != LOCK_NAME {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read(path: &Path) -> Result<Option<Summary>, BackupError> {
    let found = match files::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
        found => found.map_err(|error| failed(path, error))?,
    };
    let Some(text) = found else { return Ok(None) };
    let damaged = |error: serde_json::Error| failed(path, io::Error::other(error));
    let summary: Summary = serde_json::from_str(&text).map_err(damaged)?;
    if summary.version != VERSION {
        return Err(BackupError::Version { path: path.to_owned(), found: summary.version });
    }
    Ok(Some(summary))
}

fn write(path: &Path, summary: &Summary) -> Result<(), BackupError> {
    let text = serde_json::to_string_pretty(summary).expect("numbers and strings are JSON");
    files::write(path, &format!("{text}\n")).map_err(|error| failed(path, error))
}

/// Removes a file, durably. A missing file counts as removed.
#[expect(clippy::disallowed_methods, reason = "marks, no data")]
pub(super) fn remove(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => sync_folder_of(path),
    }
}

/// Renames a file, durably.
#[expect(clippy::disallowed_methods, reason = "redb's file does not go through env::Disk")]
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    std::fs::rename(from, to).map_err(|error| failed(to, error))?;
    sync_folder_of(to)
}

#[expect(clippy::disallowed_methods, reason = "the folder of marks")]
fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| failed(folder, error))
}

fn failed(path: &Path, error: io::Error) -> BackupError {
    BackupError::File { path: path.to_owned(), error }
}
