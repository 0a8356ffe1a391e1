//! The admin commands that start a backup of the running node and show its progress.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::controls::BackupView;
use super::state::AdminState;

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
