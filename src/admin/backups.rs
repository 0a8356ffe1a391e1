//! The admin commands that make a backup of the running node and show how far it is.

use std::fmt::Debug;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::server::AdminState;

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
    /// Bytes copied. What was there already is not counted.
    pub copied_bytes: u64,
    /// Of a complete backup: what its `backup.json` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Why it failed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Makes backups of a node, one at a time.
pub trait BackupControl: Send + Sync + Debug {
    /// Begins a backup in a directory of the node's machine. It goes on when nobody asks for it.
    /// `None` while another one runs.
    fn begin(&self, directory: PathBuf) -> Option<BackupView>;

    /// The last backup; `None` before the first one.
    fn last(&self) -> Option<BackupView>;
}

/// Body of `POST /admin/backup`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Where {
    directory: PathBuf,
}

/// `POST /admin/backup`
pub(super) async fn begin(
    State(state): State<AdminState>,
    note: Note,
    body: Result<Json<Where>, JsonRejection>,
) -> Result<(StatusCode, Json<BackupView>), Failure> {
    let Json(body) = body.map_err(|error| Failure::invalid(error.body_text()))?;
    if !body.directory.is_absolute() {
        let text = "directory must be an absolute path of the node's machine";
        return Err(Failure::invalid(text.to_owned()));
    }
    let name = body.directory.display().to_string();
    note.thing(Thing::Backup, "BeginBackup", name, Value::Null);
    let begun = state.backups()?.begin(body.directory).ok_or_else(|| {
        let text = "the node is making a backup: wait until it has ended";
        Failure::new(StatusCode::CONFLICT, "BackupRuns", text)
    })?;
    Ok((StatusCode::ACCEPTED, Json(begun)))
}

/// `GET /admin/backup`
pub(super) async fn show(State(state): State<AdminState>) -> Result<Json<BackupView>, Failure> {
    state.backups()?.last().map(Json).ok_or_else(|| {
        let text = "the node has made no backup since it started";
        Failure::new(StatusCode::NOT_FOUND, "NoBackup", text)
    })
}
