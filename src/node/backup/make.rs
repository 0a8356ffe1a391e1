//! Makes a copy of a store, or a store of a copy.

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
use super::copy::How;
use super::copy::Pace;
use super::error::BackupError;
use super::mark::Mark;
use super::marks;
use super::marks::Summary;
use super::progress::Progress;
use super::source::Source;
use super::watched_disk::WatchedDisk;

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
pub(super) async fn backup_unless_given_up(
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
