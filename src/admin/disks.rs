//! The admin commands that list, drain and remove disks.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::controls::DiskRefusal;
use super::controls::DiskView;
use super::state::AdminState;

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
