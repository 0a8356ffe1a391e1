//! Backups: a copy of a store in a directory of its own, and the way back. The node may serve
//! meanwhile or be stopped. ADR 0024 says why the copy is consistent, `docs/backup.md` how to use
//! it.
//!
//! 1. The directory is locked until the end.
//! 2. `source.rs`: what is copied: of a node that serves a consistent cut, which keeps what it
//!    names. A store that cannot be copied is refused here, and the last backup stays good.
//! 3. `marks.rs`: the directory is marked as incomplete.
//! 4. `copy.rs`: logs and runs are copied; each frame is verified. What is there already is not
//!    copied again.
//! 5. `rows.rs`: the coordinator's rows are written, and compared with what there is to copy.
//! 6. `copy.rs`: what the store no longer has is removed, and data is copied.
//! 7. `marks.rs`: `backup.json` is written and the mark is removed, durably.
//!
//! The node gives a backup up when its directory does not answer (`attempt.rs`).
//!
//! A restore does the same from a backup to a new directory.

mod attempt;
mod copy;
mod error;
mod marks;
mod rows;
mod source;
mod watched_disk;

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use crate::env::Env;
use crate::env::Tasks;

use super::error::NodeError;
use super::master_key;
use super::storage::Storage;
use super::storage::open_disk;

pub use attempt::{Attempt, GIVE_UP_AFTER};
pub use error::BackupError;
pub use marks::{Mark, Summary, refuse_marked};
pub use source::Source;

use copy::Pace;
use watched_disk::WatchedDisk;

/// The progress of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Extents that are in the copy.
    pub extents: usize,
    /// Extents of the store.
    pub extents_total: usize,
    /// Bytes copied. What was there already is not counted.
    pub copied_bytes: u64,
}

/// Told of progress.
pub type Progress = Arc<dyn Fn(Step) + Send + Sync>;

/// Makes `to` a backup of the store, or brings the backup that it is up to date.
///
/// # Errors
/// [`BackupError`]. The store is as it was. Another call makes `to` a backup.
pub async fn backup(
    from: &Source,
    to: &Path,
    env: &Env,
    progress: Progress,
) -> Result<Summary, BackupError> {
    let attempt = Attempt::new(Arc::clone(&env.clock));
    backup_unless_given_up(from, to, env, (progress, attempt)).await
}

/// [`backup`], unless the node gives it up.
///
/// # Errors
/// As of [`backup`].
pub async fn backup_unless_given_up(
    from: &Source,
    to: &Path,
    env: &Env,
    (progress, attempt): (Progress, Arc<Attempt>),
) -> Result<Summary, BackupError> {
    let summary = Summary::new(from, env).await?;
    let how = How { pace: Pace::of(from), progress, attempt: Arc::clone(&attempt) };
    let made = make(from, (to, Mark::Backup), env, how, summary).await;
    // Calls that are not made any more look like failures of the directory.
    made.map_err(|error| if attempt.is_given_up() { BackupError::GivenUp } else { error })
}

/// How something is copied.
struct How {
    pace: Pace,
    progress: Progress,
    attempt: Arc<Attempt>,
}

/// Makes a directory what the mark says. It is locked until it is complete.
async fn make(
    from: &Source,
    (to, mark): (&Path, Mark),
    env: &Env,
    how: How,
    summary: Summary,
) -> Result<Summary, BackupError> {
    let attempt = Arc::clone(&how.attempt);
    // Before it is locked: a lock leaves a file in a directory that is something else.
    marks::may_become(to, mark, &summary)?;
    attempt.go_on()?;
    let own = Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() };
    let lock = open_disk(to, &own)?;
    let contents = from.contents(env, &attempt).await?;
    marks::begin((to, mark), &summary, &attempt)?;
    let disk = if from.is_served() {
        WatchedDisk::over(Arc::clone(&lock), Arc::clone(&attempt), own.tasks.clone())
    } else {
        Arc::clone(&lock)
    };
    let step = copy::copy(from, &contents, (to, disk, own), how).await?;
    let (extents, copied_bytes) = (step.extents_total, step.copied_bytes);
    let summary = Summary { extents, copied_bytes, ..summary };
    attempt.let_go()?;
    marks::end((to, mark), &summary, &attempt)?;
    drop(lock);
    Ok(summary)
}

/// Makes `to`, an empty or new directory, the data directory of a store again. `key` is the master
/// key file of the store.
///
/// # Errors
/// [`BackupError`]. Another call completes the restore.
pub async fn restore(
    (backup, key): (&Path, &Path),
    to: &Path,
    env: &Env,
    progress: Progress,
) -> Result<Summary, BackupError> {
    let summary = marks::complete(backup)?;
    let storage = Storage::open_backup(backup, env).await?;
    let restored = async {
        let opened = master_key::open_for_check(key, storage.coordinator.as_ref()).await;
        opened.map_err(NodeError::from)?;
        let from = Source::restored(&storage);
        let attempt = Attempt::new(Arc::clone(&env.clock));
        let how = How { pace: Pace::Restore, progress, attempt };
        make(&from, (to, Mark::Restore), env, how, summary).await
    };
    let restored = restored.await;
    storage.capacity.shutdown().await;
    restored
}

#[cfg(test)]
mod tests;
