//! Opens the durable state of a node: to serve, verify or copy it.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CatalogPlace;
use crate::capacity::OpenExtents;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::node::backup::refuse_marked;
use crate::node::config::Config;
use crate::node::disks::Given;
use crate::node::error::NodeError;

use super::disk::narrow;
use super::disk::open_disks;
use super::durable::Storage;
use super::overlay_disk::OverlayDisk;
use super::owner::Owner;
use super::start::CoordinatorPlace;
use super::start::Start;

impl Storage {
    /// Opens and recovers all data directories, and creates missing files in new ones.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub async fn open(
        config: &Config,
        env: &Env,
        metrics: CapacityMetrics,
        owner: Owner,
    ) -> Result<Self, NodeError> {
        let given =
            Given { data: &config.data, add: &config.add_disk, without: &config.without_disk };
        for path in &config.data {
            refuse_marked(path)?;
            narrow(path);
        }
        let disks = open_disks(given.data, env)?;
        let (env, config) = (env.clone(), capacity_config(config, owner));
        open_for(Use::Serve, Start { given, disks, env, config, metrics, owner }).await
    }

    /// Whether there is no store yet in these directories.
    #[must_use]
    pub fn is_new(data: &[PathBuf]) -> bool {
        !data.first().is_some_and(|first| first.join(FILE_NAME).is_file())
    }

    /// As [`Self::open`], for verification: without the background scrub, and on copies of the
    /// coordinator's file and of the catalog. The journals are written to the extents as in a
    /// start; for disks at the places `unwritable` these writes stay in memory.
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
        let (env, metrics, owner) = (env.clone(), CapacityMetrics::default(), Owner::Alone);
        open_for(Use::Check, Start { given, disks, env, config, metrics, owner }).await
    }

    /// As [`Self::open_for_check`], to copy the store of a stopped node. The catalogs have the
    /// freed ranges.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn open_for_backup(data: &[PathBuf], env: &Env) -> Result<Self, NodeError> {
        data.iter().try_for_each(|path| refuse_marked(path))?;
        Self::open_quiet(data, env, CatalogPlace::Folders(data.to_vec())).await
    }

    /// Opens the store of a node alone that is to be the first node of a cluster. Its extents are
    /// sealed, as at each start of such a node.
    ///
    /// # Errors
    /// [`NodeError`]; [`NodeError::OfCluster`] of a node of a cluster.
    pub async fn open_to_found(data: &[PathBuf], env: &Env) -> Result<Self, NodeError> {
        data.iter().try_for_each(|path| refuse_marked(path))?;
        let config = CapacityConfig {
            scrub_bytes_per_second: 0,
            compact_bytes_per_second: 0,
            catalog: CatalogPlace::Folders(data.to_vec()),
            ..CapacityConfig::default()
        };
        let given = Given { data, add: &[], without: &[] };
        let disks = open_disks(data, env)?;
        let (env, metrics, owner) = (env.clone(), CapacityMetrics::default(), Owner::Founder);
        open_for(Use::Serve, Start { given, disks, env, config, metrics, owner }).await
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
        let (env, metrics, owner) = (env.clone(), CapacityMetrics::default(), Owner::Alone);
        open_for(Use::Check, Start { given, disks, env, config, metrics, owner }).await
    }
}

/// Starts from the disks, with the coordinator's file in the first data directory.
async fn open_for(purpose: Use, start: Start<'_>) -> Result<Storage, NodeError> {
    let path = start.given.data.first().expect("checked: a data directory").join(FILE_NAME);
    let place = FilePlace { path, env: start.env.clone(), purpose };
    start.open(&place).await
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

/// The purpose for which a store is opened.
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

fn capacity_config(config: &Config, owner: Owner) -> CapacityConfig {
    CapacityConfig {
        open_extents: match owner {
            Owner::Alone | Owner::Founder => OpenExtents::Seal,
            Owner::Cluster(_) => OpenExtents::Close,
        },
        journal_bytes: config.journal_bytes,
        reserve_bytes: config.reserve_bytes,
        scrub_bytes_per_second: config.scrub_bytes_per_second,
        catalog: CatalogPlace::Folders(config.data.clone()),
        ..CapacityConfig::default()
    }
}
