//! The paths of users.

use axum::Json;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::State;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::audit_log::Thing;

use super::account_store::KeySlot;
use super::account_store::NewKey;
use super::account_store::NewUser;
use super::account_store::UserView;
use super::accounts::Sent;
use super::accounts::Show;
use super::accounts::answered;
use super::accounts::refused;
use super::accounts::sent;
use super::answer::Failure;
use super::audit_log::Note;
use super::state::AdminState;

/// Body of `POST /admin/accounts/{name}/users/{user}/rotate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    key: KeySlot,
    #[serde(default)]
    access_key_id: Option<String>,
    #[serde(default)]
    secret_key: Option<String>,
}

/// `GET /admin/accounts/{name}/users`
pub(super) async fn list(
    State(state): State<AdminState>,
    Path(account): Path<String>,
) -> Result<Json<Vec<UserView>>, Failure> {
    answered(state.control()?.accounts.users(&account).await)
}

/// `POST /admin/accounts/{name}/users`
pub(super) async fn create(
    State(state): State<AdminState>,
    Path(account): Path<String>,
    note: Note,
    body: Sent<NewUser>,
) -> Result<(StatusCode, Json<UserView>), Failure> {
    let body = sent(body)?;
    note.account(Thing::User, "CreateUser", &account, json!({ "user": body.name }));
    let made = state.control()?.accounts.create_user(&account, body).await;
    made.map(|user| (StatusCode::CREATED, Json(user))).map_err(|error| refused(&error))
}

/// `GET /admin/accounts/{name}/users/{user}?keys=true`
pub(super) async fn show(
    State(state): State<AdminState>,
    Path((account, user)): Path<(String, String)>,
    query: Result<Query<Show>, QueryRejection>,
) -> Result<Json<UserView>, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid(error.body_text()))?;
    answered(state.control()?.accounts.user(&account, &user, query.keys).await)
}

/// `POST /admin/accounts/{name}/users/{user}/rotate`
pub(super) async fn rotate(
    State(state): State<AdminState>,
    Path((account, user)): Path<(String, String)>,
    note: Note,
    body: Sent<Rotate>,
) -> Result<Json<UserView>, Failure> {
    let Rotate { key, access_key_id, secret_key } = sent(body)?;
    note.account(Thing::User, "RotateUserKey", &account, json!({ "user": user, "key": key }));
    let new = NewKey { access_key_id, secret_key };
    answered(state.control()?.accounts.rotate_user(&account, &user, key, new).await)
}

/// `DELETE /admin/accounts/{name}/users/{user}`
pub(super) async fn remove(
    State(state): State<AdminState>,
    Path((account, user)): Path<(String, String)>,
    note: Note,
) -> Result<StatusCode, Failure> {
    note.account(Thing::User, "DeleteUser", &account, json!({ "user": user }));
    let removed = state.control()?.accounts.delete_user(&account, &user).await;
    removed.map(|()| StatusCode::NO_CONTENT).map_err(|error| refused(&error))
}
