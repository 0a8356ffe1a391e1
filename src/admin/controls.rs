//! The interfaces of the node for commands: its disks, its backups and its master keys.

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error as ThisError;

/// A disk in answers of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskView {
    /// Its number in the store. Unknown if the disk could never be read.
    pub number: Option<usize>,
    /// Its directory.
    pub path: String,
    /// `in use`, `draining`, `drained`, `poisoned` or `out of service`.
    pub state: String,
    /// Extents on it.
    pub extents: usize,
    /// Bytes of its extents that are not freed.
    pub live_bytes: u64,
    /// Bytes of its file system.
    pub total_bytes: u64,
    /// Bytes available in its file system.
    pub available_bytes: u64,
}

/// Why a command about a disk is refused. The text says what to do.
#[derive(Debug, ThisError)]
pub enum DiskRefusal {
    /// No disk has this name.
    #[error(
        "{0} is not a disk of this node: `blockyard disk list` shows their numbers and directories"
    )]
    NoSuchDisk(String),
    /// The first disk also holds the coordinator's file.
    #[error(
        "{0} is the first disk and holds the coordinator's file: it cannot be drained or removed while the node runs"
    )]
    First(String),
    /// No other disk takes its extents.
    #[error("{0} is the only disk that takes new data: add another one with --add-disk first")]
    Only(String),
    /// The disk takes no writes, so its extents cannot be removed.
    #[error(
        "{0} takes no writes because a write failed: restart the node, which verifies the disk, and try again"
    )]
    Poisoned(String),
    /// It still holds extents.
    #[error(
        "{path} still holds {extents} extents: run `blockyard disk drain {path}` and wait until it is drained"
    )]
    NotDrained {
        /// The disk.
        path: String,
        /// The number of extents left.
        extents: usize,
    },
    /// The coordinator or the disk failed.
    #[error("{0}")]
    Failed(String),
}

/// The disks of a node.
#[async_trait]
pub trait DiskControl: Send + Sync + Debug {
    /// All disks of the store, in the order they were given.
    ///
    /// # Errors
    /// [`DiskRefusal::Failed`].
    async fn list(&self) -> Result<Vec<DiskView>, DiskRefusal>;

    /// Starts to drain a disk, named by its number or directory. A drain continues after a restart.
    ///
    /// # Errors
    /// [`DiskRefusal`].
    async fn drain(&self, disk: &str) -> Result<DiskView, DiskRefusal>;

    /// Removes a drained disk from the store. Its directory is no longer in use when this returns.
    ///
    /// # Errors
    /// [`DiskRefusal`].
    async fn remove(&self, disk: &str) -> Result<(), DiskRefusal>;

    /// Problems of disks and partitions, one line each. Never contains names of containers or
    /// blobs.
    fn troubles(&self) -> Vec<String>;
}

/// A backup in answers of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupView {
    /// The number of the backup since the node started.
    pub number: u64,
    /// Its directory.
    pub directory: String,
    /// `running`, `complete` or `failed`.
    pub state: String,
    /// Extents that are in the copy.
    pub extents: usize,
    /// Extents of the store.
    pub extents_total: usize,
    /// Bytes copied. Bytes that an earlier backup had copied are not counted.
    pub copied_bytes: u64,
    /// The content of `backup.json`, of a complete backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Why it failed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Makes backups of a node, one at a time.
pub trait BackupControl: Send + Sync + Debug {
    /// Starts a backup to a directory of the node's machine. It continues when its client leaves.
    /// `None` while another one runs.
    fn begin(&self, directory: PathBuf) -> Option<BackupView>;

    /// The last backup; `None` before the first one.
    fn last(&self) -> Option<BackupView>;
}

/// The view of a master key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterKeyView {
    /// Its number in the ring.
    pub id: u32,
    /// When it was created, ISO 8601.
    pub created: String,
    /// `active`: it seals secrets. `retired`: it opens secrets sealed before a rotation.
    pub state: String,
}

/// The view of a key ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRingView {
    /// The ring's id.
    pub ring: String,
    /// The master key file.
    pub file: String,
    /// All keys, by number.
    pub keys: Vec<MasterKeyView>,
    /// After a rotation: the number of secrets that were sealed again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resealed: Option<usize>,
}

/// The key ring of a node.
#[async_trait]
pub trait KeyControl: Send + Sync + Debug {
    /// The current ring.
    fn list(&self) -> KeyRingView;

    /// Adds a key, durably, and then seals all secrets under it.
    ///
    /// # Errors
    /// A text for the operator, also when damaged secrets stay as they are. Afterwards the file has
    /// the new key too, or only the old ones.
    async fn rotate(&self) -> Result<KeyRingView, String>;
}
