//! Master keys: the commands that list and rotate them. No key is ever shown.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;

use crate::audit_log::Thing;

use super::answer::Failure;
use super::audit_log::Note;
use super::controls::KeyRingView;
use super::state::AdminState;

/// `GET /admin/keys`
pub(super) async fn list(State(state): State<AdminState>) -> Result<Json<KeyRingView>, Failure> {
    Ok(Json(state.keys()?.list()))
}

/// `POST /admin/keys/rotate`
pub(super) async fn rotate(
    State(state): State<AdminState>,
    note: Note,
) -> Result<Json<KeyRingView>, Failure> {
    note.thing(Thing::Key, "RotateMasterKey", "key ring".to_owned(), Value::Null);
    state.keys()?.rotate().await.map(Json).map_err(|error| {
        tracing::error!(%error, "the master key was not rotated");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", error)
    })
}
