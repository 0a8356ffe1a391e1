//! The durable half of a node: disks, extents, coordinator.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::CatalogPlace;
use crate::capacity::OpenError;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::embedded::FILE_NAME;
use crate::env;
use crate::env::Disk;
use crate::env::DiskError;
use crate::env::Env;
use crate::env::OsDisk;
use crate::env::UnusableDisk;

use super::backup;
use super::config::Config;
use super::disks::Given;
use super::error::NodeError;
use super::overlay_disk::OverlayDisk;
use super::start::CoordinatorPlace;
use super::start::Start;

/// What a node keeps.
#[derive(Debug)]
pub struct Storage {
    /// The extents of all disks.
    pub capacity: Arc<CapacityNode>,
    /// Descriptors, counters.
    pub coordinator: Arc<dyn Coordinator>,
}

impl Storage {
    /// Opens and recovers all data directories, creating what is missing in new ones.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub async fn open(
        config: &Config,
        env: &Env,
        metrics: CapacityMetrics,
    ) -> Result<Self, NodeError> {
        let given =
            Given { data: &config.data, add: &config.add_disk, without: &config.without_disk };
        for path in &config.data {
            backup::refuse_marked(path)?;
            narrow(path);
        }
        let disks = open_disks(given.data, env)?;
        Self::open_with((given, disks), env, capacity_config(config), (metrics, Use::Serve)).await
    }

    /// Whether there is no store yet in these directories.
    #[must_use]
    pub fn is_new(data: &[PathBuf]) -> bool {
        !data.first().is_some_and(|first| first.join(FILE_NAME).is_file())
    }

    /// As [`Self::open`], for verification: without the background scrub, and on copies of the
    /// coordinator's file and of the catalog. What the journals hold goes to the extents all the
    /// same. For disks at the places `unwritable` it stays in memory.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn open_for_check(
        given: Given<'_>,
        unwritable: &BTreeSet<usize>,
        env: &Env,
    ) -> Result<Self, NodeError> {
        let config = CapacityConfig {
            scrub_bytes_per_second: 0,
            compact_bytes_per_second: 0,
            catalog: CatalogPlace::Memory,
            ..CapacityConfig::default()
        };
        let mut disks = open_disks(given.data, env)?;
        for (at, disk) in disks.iter_mut().enumerate() {
            if unwritable.contains(&at) {
                *disk = OverlayDisk::over(Arc::clone(disk));
            }
        }
        let of = (CapacityMetrics::default(), Use::Check);
        Self::open_with((given, disks), env, config, of).await
    }

    /// As [`Self::open_for_check`], to copy the store of a stopped node. What was freed is known by
    /// its catalogs.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn open_for_backup(data: &[PathBuf], env: &Env) -> Result<Self, NodeError> {
        data.iter().try_for_each(|path| backup::refuse_marked(path))?;
        Self::open_quiet(data, env, CatalogPlace::Folders(data.to_vec())).await
    }

    /// As [`Self::open_for_check`], to restore from a backup.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn open_backup(backup: &Path, env: &Env) -> Result<Self, NodeError> {
        Self::open_quiet(&[backup.to_owned()], env, CatalogPlace::Memory).await
    }

    async fn open_quiet(
        data: &[PathBuf],
        env: &Env,
        catalog: CatalogPlace,
    ) -> Result<Self, NodeError> {
        if let Some(path) = data.iter().find(|path| !path.is_dir()) {
            return Err(NodeError::NoData { path: path.clone() });
        }
        if Self::is_new(data) {
            let path = data.first().map(|first| first.join(FILE_NAME)).unwrap_or_default();
            return Err(NodeError::CoordinatorMissing { path });
        }
        let config = CapacityConfig {
            scrub_bytes_per_second: 0,
            compact_bytes_per_second: 0,
            catalog,
            ..CapacityConfig::default()
        };
        let given = Given { data, add: &[], without: &[] };
        let disks = open_disks(data, env)?;
        let of = (CapacityMetrics::default(), Use::Check);
        Self::open_with((given, disks), env, config, of).await
    }

    async fn open_with(
        (given, disks): (Given<'_>, Vec<Arc<dyn Disk>>),
        env: &Env,
        config: CapacityConfig,
        (metrics, purpose): (CapacityMetrics, Use),
    ) -> Result<Self, NodeError> {
        let file = given.data.first().expect("checked: a data directory").join(FILE_NAME);
        let place = FilePlace { path: file, env: env.clone(), purpose };
        Start { given, disks, env: env.clone(), config, metrics }.open(&place).await
    }
}

/// Names the data directory that an error is about.
pub(super) fn open_failed(data: &[PathBuf], error: OpenError) -> NodeError {
    let one = error.disk().and_then(|disk| data.get(disk)).map(std::slice::from_ref);
    let paths: Vec<String> =
        one.unwrap_or(data).iter().map(|path| path.display().to_string()).collect();
    NodeError::Capacity { path: paths.join(", "), error }
}

/// Opens the coordinator's file of a stopped store for reading only.
///
/// # Errors
/// [`NodeError::Coordinator`].
pub async fn coordinator_copy(
    data: &[PathBuf],
    env: &Env,
) -> Result<EmbeddedCoordinator, NodeError> {
    let file = data.first().map_or_else(|| PathBuf::from(FILE_NAME), |first| first.join(FILE_NAME));
    open_coordinator(&file, env, Use::Check).await
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug)]
enum Use {
    Serve,
    Check,
}

/// The coordinator's file in the first data directory.
#[derive(Debug)]
struct FilePlace {
    path: PathBuf,
    env: Env,
    purpose: Use,
}

#[async_trait]
impl CoordinatorPlace for FilePlace {
    fn path(&self) -> &Path {
        &self.path
    }

    fn is_made(&self) -> bool {
        self.path.exists()
    }

    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError> {
        Ok(Arc::new(open_coordinator(&self.path, &self.env, self.purpose).await?))
    }
}

async fn open_coordinator(
    file: &Path,
    env: &Env,
    purpose: Use,
) -> Result<EmbeddedCoordinator, NodeError> {
    match purpose {
        Use::Serve => EmbeddedCoordinator::open(file, env).await,
        Use::Check => EmbeddedCoordinator::open_copy(file, env).await,
    }
    .map_err(|error| NodeError::Coordinator { path: file.to_owned(), error })
}

/// Locks all data directories. One that fails and is not the first is out of service.
fn open_disks(data: &[PathBuf], env: &Env) -> Result<Vec<Arc<dyn Disk>>, NodeError> {
    let one = |(at, path): (usize, &PathBuf)| match open_disk(path, env) {
        Err(NodeError::Data { error, .. }) if at > 0 && is_failing(path, &error) => {
            Ok(Arc::new(UnusableDisk(error)) as Arc<dyn Disk>)
        }
        opened => opened,
    };
    data.iter().enumerate().map(one).collect()
}

/// Locks one data directory.
///
/// # Errors
/// [`NodeError::Data`].
pub fn open_disk(path: &Path, env: &Env) -> Result<Arc<dyn Disk>, NodeError> {
    OsDisk::open(path, env.tasks.clone())
        .map_err(|error| NodeError::Data { path: path.to_owned(), error })
}

/// Whether a directory cannot be opened because its device fails. One that is not there, or that
/// this user may not open, is a mistake of the start.
fn is_failing(path: &Path, error: &DiskError) -> bool {
    error.is_of_device() && !matches!(path.try_exists(), Ok(false))
}

/// Takes a data directory's files from other users, as far as its owner is the node's user.
fn narrow(path: &Path) {
    // A new one is made below.
    if !path.is_dir() {
        return;
    }
    let shown = path.display();
    match env::narrow(path) {
        Ok(found) => {
            if found.narrowed > 0 {
                tracing::info!(
                    path = %shown, files = found.narrowed,
                    "files were made private to this user"
                );
            }
            if let Some(first) = found.first_left {
                let (first, files) = (first.display(), found.left);
                tracing::warn!(
                    path = %shown, files, %first,
                    "other users may read files of the data directory: give them to this user"
                );
            }
        }
        Err(error) => {
            tracing::warn!(
                path = %shown, %error,
                "the modes of the files in the data directory cannot be read"
            );
        }
    }
}

fn capacity_config(config: &Config) -> CapacityConfig {
    CapacityConfig {
        journal_bytes: config.journal_bytes,
        reserve_bytes: config.reserve_bytes,
        scrub_bytes_per_second: config.scrub_bytes_per_second,
        catalog: CatalogPlace::Folders(config.data.clone()),
        ..CapacityConfig::default()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::chown;

    use super::*;
    use crate::telemetry::CapturedLog;

    #[test]
    fn data_directory_that_was_wide_is_told_and_what_another_user_owns_is_warned_about() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        let log = CapturedLog::default();
        let _kept = log.begin();
        narrow(&root);
        assert_eq!(log.text(), "", "a new one is made closed");
        fs::create_dir(&root).unwrap();
        let path = root.join("journal");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        let open = || fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        open();
        let shown = root.display().to_string();
        narrow(&root);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            log.lines_with(&["INFO", "made private", "files=1", &shown]),
            1,
            "{}",
            log.text()
        );
        narrow(&root);
        assert_eq!(log.text().lines().count(), 1, "{}", log.text());
        // Only the superuser can give a file away.
        if chown(&path, Some(12345), None).is_ok() {
            open();
            narrow(&root);
            let first = format!("first={}", path.display());
            let told =
                ["WARN", "other users may read", "files=1", &first, "give them to this user"];
            assert_eq!(log.lines_with(&told), 1, "{}", log.text());
        }
    }
}
