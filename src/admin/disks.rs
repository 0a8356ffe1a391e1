//! The admin commands that list, drain and remove disks.

use std::fmt::Debug;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error as ThisError;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::server::AdminState;

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

/// Why a command about a disk is refused. The text tells what to do.
#[derive(Debug, ThisError)]
pub enum DiskRefusal {
    /// No disk has this name.
    #[error(
        "{0} is no disk of this node: `blockyard disk list` shows their numbers and directories"
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

    /// Begins to drain a disk, named by its number or directory. A drain goes on after a restart.
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

/// Body of `POST /admin/disks/drain` and `POST /admin/disks/remove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskName {
    disk: String,
}

/// `GET /admin/disks`
pub(super) async fn list(State(state): State<AdminState>) -> Result<Json<Vec<DiskView>>, Failure> {
    state.disks()?.list().await.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/disks/drain`
pub(super) async fn drain(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<DiskName>, JsonRejection>,
) -> Result<Json<DiskView>, Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    note.thing(Thing::Disk, "DrainDisk", body.disk.clone(), Value::Null);
    state.disks()?.drain(&body.disk).await.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/disks/remove`
pub(super) async fn remove(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<DiskName>, JsonRejection>,
) -> Result<StatusCode, Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    note.thing(Thing::Disk, "RemoveDisk", body.disk.clone(), Value::Null);
    let removed = state.disks()?.remove(&body.disk).await;
    removed.map(|()| StatusCode::NO_CONTENT).map_err(|error| refused(&error))
}

fn refused(error: &DiskRefusal) -> Failure {
    use DiskRefusal as E;
    let (status, code) = match error {
        E::NoSuchDisk(_) => (StatusCode::NOT_FOUND, "NoSuchDisk"),
        E::First(_) => (StatusCode::CONFLICT, "FirstDisk"),
        E::Only(_) => (StatusCode::CONFLICT, "OnlyDisk"),
        E::Poisoned(_) => (StatusCode::CONFLICT, "DiskPoisoned"),
        E::NotDrained { .. } => (StatusCode::CONFLICT, "DiskNotDrained"),
        E::Failed(_) => {
            tracing::error!(%error, "an admin command failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Failed")
        }
    };
    Failure::new(status, code, error.to_string())
}
