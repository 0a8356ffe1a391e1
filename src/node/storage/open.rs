//! Opens the durable half of a node: to serve it, to verify it, to copy it.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CatalogPlace;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Disk;
use crate::env::Env;
use crate::node::backup::refuse_marked;
use crate::node::config::Config;
use crate::node::disks::Given;
use crate::node::error::NodeError;

use super::disk::narrow;
use super::disk::open_disks;
use super::overlay_disk::OverlayDisk;
use super::parts::Storage;
use super::start::CoordinatorPlace;
use super::start::Start;

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
            refuse_marked(path)?;
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
            keeps_format: true,
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
        data.iter().try_for_each(|path| refuse_marked(path))?;
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
            keeps_format: true,
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

fn capacity_config(config: &Config) -> CapacityConfig {
    CapacityConfig {
        journal_bytes: config.journal_bytes,
        reserve_bytes: config.reserve_bytes,
        scrub_bytes_per_second: config.scrub_bytes_per_second,
        catalog: CatalogPlace::Folders(config.data.clone()),
        ..CapacityConfig::default()
    }
}
