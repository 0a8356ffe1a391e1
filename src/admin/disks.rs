//! Disks: what the node tells of them, and the commands that empty and remove one.

use std::fmt::Debug;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::answer::Failure;
use super::server::AdminState;

/// A disk as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskView {
    /// Its number in the store; unknown of one that could never be read.
    pub number: Option<usize>,
    /// Its directory.
    pub path: String,
    /// `in use`, `draining`, `drained`, `poisoned` or `out of service`.
    pub state: String,
    /// Extents on it.
    pub extents: usize,
    /// Their bytes that are not freed.
    pub live_bytes: u64,
    /// Bytes of its file system.
    pub total_bytes: u64,
    /// Of these, bytes available.
    pub available_bytes: u64,
}

/// Why a command about a disk is refused; the text says what to do.
#[derive(Debug, ThisError)]
pub enum DiskRefusal {
    /// There is none of that name.
    #[error(
        "{0} is no disk of this node: `blockyard disk list` shows them by number and directory"
    )]
    NoSuchDisk(String),
    /// It holds more than extents.
    #[error(
        "{0} is the first disk and holds the coordinator's file: it cannot be drained or removed while the node runs"
    )]
    First(String),
    /// Its extents have nowhere to go.
    #[error("{0} is the only disk that takes new data: add another one with --add-disk first")]
    Only(String),
    /// It takes no writes, so nothing of it can be removed.
    #[error(
        "{0} takes no writes since one failed: restart the node, which verifies it, and try again"
    )]
    Poisoned(String),
    /// It still holds extents.
    #[error(
        "{path} still holds {extents} extents: run `blockyard disk drain {path}` and wait until it is drained"
    )]
    NotDrained {
        /// The disk.
        path: String,
        /// What is left.
        extents: usize,
    },
    /// It does not work now.
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

    /// Begins to empty a disk, named by its number or directory. It goes on after a restart.
    ///
    /// # Errors
    /// [`DiskRefusal`].
    async fn drain(&self, disk: &str) -> Result<DiskView, DiskRefusal>;

    /// Takes an empty disk out of the store. When it returns, the directory is let go of.
    ///
    /// # Errors
    /// [`DiskRefusal`].
    async fn remove(&self, disk: &str) -> Result<(), DiskRefusal>;

    /// What is wrong with disks and partitions, a line each, without a name of anybody's data.
    fn troubles(&self) -> Vec<String>;
}

/// Body of `POST /admin/disks/drain` and `POST /admin/disks/remove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    disk: String,
}

/// `GET /admin/disks`
pub(super) async fn list(State(state): State<AdminState>) -> Result<Json<Vec<DiskView>>, Failure> {
    state.disks()?.list().await.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/disks/drain`
pub(super) async fn drain(
    State(state): State<AdminState>,
    body: Result<Json<Which>, JsonRejection>,
) -> Result<Json<DiskView>, Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    state.disks()?.drain(&body.disk).await.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/disks/remove`
pub(super) async fn remove(
    State(state): State<AdminState>,
    body: Result<Json<Which>, JsonRejection>,
) -> Result<StatusCode, Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
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
