//! Makes a backup of a store, and a store from a backup.

use std::path::Path;
use std::sync::Arc;

use crate::env::Env;
use crate::env::Tasks;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::storage::Storage;
use crate::node::storage::open_disk;

use super::attempt::Attempt;
use super::copy;
use super::copy::CopyDisk;
use super::copy::How;
use super::copy::Pace;
use super::destination::Destination;
use super::error::BackupError;
use super::mark::Mark;
use super::marks;
use super::marks::Summary;
use super::progress::Progress;
use super::source::Source;
use super::watched_disk::WatchedDisk;

/// Makes `to` a backup of the store, or updates the backup in it.
///
/// # Errors
/// [`BackupError`]. The store is unchanged. Another call completes the backup.
pub async fn backup(
    from: &Source,
    to: &Path,
    env: &Env,
    progress: Progress,
) -> Result<Summary, BackupError> {
    let attempt = Attempt::new(Arc::clone(&env.clock));
    backup_unless_given_up(from, to, env, How { pace: Pace::of(from), progress, attempt }).await
}

/// [`backup`], unless the node gives it up.
///
/// # Errors
/// As of [`backup`].
pub(super) async fn backup_unless_given_up(
    from: &Source,
    to: &Path,
    env: &Env,
    how: How,
) -> Result<Summary, BackupError> {
    let attempt = Arc::clone(&how.attempt);
    let to = Destination { path: to, mark: Mark::Backup };
    let made = make(from, to, Summary::new(from, env).await?, env, how).await;
    // After the backup is given up, its calls fail as if the directory had failed.
    made.map_err(|error| if attempt.is_given_up() { BackupError::GivenUp } else { error })
}

/// Copies a store to a directory, which is locked until it is complete.
async fn make(
    from: &Source,
    to: Destination<'_>,
    summary: Summary,
    env: &Env,
    how: How,
) -> Result<Summary, BackupError> {
    let attempt = Arc::clone(&how.attempt);
    // Before it is locked: the lock would leave a file in a directory that holds something else.
    marks::may_become(to, &summary)?;
    attempt.go_on()?;
    let own = Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() };
    let lock = open_disk(to.path, &own)?;
    let contents = from.contents(env, &attempt).await?;
    marks::begin(to, &summary, &attempt)?;
    let disk = if from.is_served() {
        WatchedDisk::over(Arc::clone(&lock), Arc::clone(&attempt), own.tasks.clone())
    } else {
        Arc::clone(&lock)
    };
    let to_disk = CopyDisk { path: to.path, disk, env: own };
    let step = copy::copy(from, &contents, to_disk, how).await?;
    let (extents, copied_bytes) = (step.extents_total, step.copied_bytes);
    let summary = Summary { extents, copied_bytes, ..summary };
    attempt.let_go()?;
    marks::end(to, &summary, &attempt)?;
    drop(lock);
    Ok(summary)
}

/// A backup, and the parts that read it.
#[derive(Clone, Copy, Debug)]
pub struct RestoreFrom<'a> {
    /// The directory of the backup.
    pub backup: &'a Path,
    /// The master key file of the store.
    pub master_key_file: &'a Path,
}

/// Restores a store from a backup to `to`, an empty or new directory.
///
/// # Errors
/// [`BackupError`]. Another call completes the restore.
pub async fn restore(
    from: RestoreFrom<'_>,
    to: &Path,
    env: &Env,
    progress: Progress,
) -> Result<Summary, BackupError> {
    let RestoreFrom { backup, master_key_file } = from;
    let summary = marks::complete(backup)?;
    let storage = Storage::open_backup(backup, env).await?;
    let restored = async {
        let opened =
            master_key::open_for_check(master_key_file, storage.coordinator.as_ref()).await;
        opened.map_err(NodeError::from)?;
        let from = Source::restored(&storage);
        let attempt = Attempt::new(Arc::clone(&env.clock));
        let how = How { pace: Pace::Restore, progress, attempt };
        make(&from, Destination { path: to, mark: Mark::Restore }, summary, env, how).await
    };
    let restored = restored.await;
    storage.capacity.shutdown().await;
    restored
}
