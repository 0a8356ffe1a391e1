//! The paths of the fault dial.

use axum::Json;
use axum::extract::Path;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use crate::audit_log::Thing;
use crate::frontend::faults::FaultRule;
use crate::frontend::faults::FaultState;

use super::answer::Failure;
use super::audit_log::Note;
use super::state::AdminState;

/// `GET /admin/faults`
pub(super) async fn list(
    State(state): State<AdminState>,
) -> Result<Json<Vec<FaultState>>, Failure> {
    Ok(Json(state.control()?.faults.list()))
}

/// `POST /admin/faults`
pub(super) async fn set(
    State(state): State<AdminState>,
    note: Note,
    rule: Result<Json<FaultRule>, axum::extract::rejection::JsonRejection>,
) -> Result<(StatusCode, Json<FaultState>), Failure> {
    let Json(rule) = rule.map_err(|error| Failure::invalid(error.body_text()))?;
    let detail = json!(rule);
    let set = state.control()?.faults.set(rule);
    let number = set.as_ref().map_or_else(|_| String::new(), |state| state.id.to_string());
    note.thing(Thing::Fault, "SetFault", number, detail);
    set.map(|state| (StatusCode::CREATED, Json(state)))
        .map_err(|error| Failure::invalid(error.to_string()))
}

/// `DELETE /admin/faults`
pub(super) async fn clear(
    State(state): State<AdminState>,
    note: Note,
) -> Result<Json<Value>, Failure> {
    note.thing(Thing::Fault, "ClearFaults", "*".to_owned(), Value::Null);
    Ok(Json(json!({ "cleared": state.control()?.faults.clear(None) })))
}

/// `DELETE /admin/faults/{id}`
pub(super) async fn clear_one(
    State(state): State<AdminState>,
    Path(id): Path<u64>,
    note: Note,
) -> Result<Json<Value>, Failure> {
    note.thing(Thing::Fault, "ClearFault", id.to_string(), Value::Null);
    match state.control()?.faults.clear(Some(id)) {
        0 => {
            let text = format!("no rule has the number {id}: `blockyard fault list` shows them");
            Err(Failure::new(StatusCode::NOT_FOUND, "NoSuchFault", text))
        }
        cleared => Ok(Json(json!({ "cleared": cleared }))),
    }
}
