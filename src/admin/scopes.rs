//! The paths of encryption scopes.

use axum::Json;
use axum::extract::Path;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::audit_log::Thing;

use super::account_store::ScopeView;
use super::accounts::Sent;
use super::accounts::answered;
use super::accounts::refused;
use super::accounts::sent;
use super::answer::Failure;
use super::audit_log::Note;
use super::state::AdminState;

/// Body of `POST /admin/accounts/{name}/scopes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    name: String,
}

/// Body of `PATCH /admin/accounts/{name}/scopes/{scope}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    enabled: bool,
}

/// `GET /admin/accounts/{name}/scopes`
pub(super) async fn list(
    State(state): State<AdminState>,
    Path(account): Path<String>,
) -> Result<Json<Vec<ScopeView>>, Failure> {
    answered(state.control()?.accounts.scopes(&account).await)
}

/// `POST /admin/accounts/{name}/scopes`
pub(super) async fn create(
    State(state): State<AdminState>,
    Path(account): Path<String>,
    note: Note,
    body: Sent<Create>,
) -> Result<(StatusCode, Json<ScopeView>), Failure> {
    let Create { name } = sent(body)?;
    note.account(Thing::Scope, "CreateEncryptionScope", &account, json!({ "scope": name }));
    let made = state.control()?.accounts.create_scope(&account, &name).await;
    made.map(|scope| (StatusCode::CREATED, Json(scope))).map_err(|error| refused(&error))
}

/// `PATCH /admin/accounts/{name}/scopes/{scope}`
pub(super) async fn change(
    State(state): State<AdminState>,
    Path((account, scope)): Path<(String, String)>,
    note: Note,
    body: Sent<Change>,
) -> Result<Json<ScopeView>, Failure> {
    let Change { enabled } = sent(body)?;
    let detail = json!({ "scope": scope, "enabled": enabled });
    note.account(Thing::Scope, "SwitchEncryptionScope", &account, detail);
    answered(state.control()?.accounts.switch_scope(&account, &scope, enabled).await)
}
