//! The paths of accounts.

use axum::Json;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::audit_log::Thing;
use crate::index;
use crate::types::AccountKind;
use crate::types::Sku;

use super::account_store::AccountSettings;
use super::account_store::AccountView;
use super::account_store::AccountsView;
use super::account_store::AssignmentView;
use super::account_store::KeySlot;
use super::account_store::NamedType;
use super::account_store::NewAccount;
use super::account_store::StoreError;
use super::account_store::kind;
use super::account_store::sku;
use super::answer::Failure;
use super::audit_log::Note;
use super::state::AdminState;

/// Body of `POST /admin/accounts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    name: String,
    #[serde(default)]
    key1: Option<String>,
    #[serde(default)]
    key2: Option<String>,
    #[serde(default)]
    anonymous: bool,
    #[serde(default, deserialize_with = "sku")]
    sku: Option<Sku>,
    #[serde(default, deserialize_with = "kind")]
    kind: Option<AccountKind>,
}

/// The longest retention of deleted containers, as on the service.
const RETENTION_DAYS_MAX: u32 = 365;

/// Body of `PATCH /admin/accounts/{name}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    #[serde(default)]
    anonymous: Option<bool>,
    #[serde(default)]
    versioning: Option<bool>,
    #[serde(default)]
    object_lock: Option<bool>,
    #[serde(default)]
    container_retention_days: Option<u32>,
    #[serde(default, deserialize_with = "sku")]
    sku: Option<Sku>,
    #[serde(default, deserialize_with = "kind")]
    kind: Option<AccountKind>,
}

/// Body of `POST /admin/accounts/{name}/rotate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    key: KeySlot,
    #[serde(default)]
    value: Option<String>,
}

/// Query of `GET /admin/accounts/{name}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Show {
    /// Whether keys are shown.
    #[serde(default)]
    pub(super) keys: bool,
}

/// Query of `DELETE /admin/accounts/{name}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    #[serde(default)]
    force: bool,
}

type Answer = Result<Json<AccountView>, Failure>;

/// `GET /admin/accounts`
pub(super) async fn list(State(state): State<AdminState>) -> Result<Json<AccountsView>, Failure> {
    state.control()?.accounts.list().await.map(Json).map_err(|error| refused(&error))
}

/// `POST /admin/accounts`
pub(super) async fn create(
    State(state): State<AdminState>,
    note: Note,
    body: Sent<Create>,
) -> Result<(StatusCode, Json<AccountView>), Failure> {
    let Create { name, key1, key2, anonymous, sku, kind } = sent(body)?;
    let named = [("sku", sku.map(Sku::as_str)), ("kind", kind.map(AccountKind::as_str))];
    let named = named.into_iter().filter_map(|(name, text)| Some((name, json!(text?))));
    let detail = named.chain([("anonymous", json!(anonymous))]).collect();
    note.account(Thing::Account, "CreateAccount", &name, detail);
    let account_type = NamedType { sku, kind };
    let new = NewAccount { keys: [key1, key2], anonymous, account_type };
    let made = state.control()?.accounts.create(&name, new).await;
    made.map(|account| (StatusCode::CREATED, Json(account))).map_err(|error| refused(&error))
}

/// `GET /admin/accounts/{name}?keys=true`
pub(super) async fn show(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: Result<Query<Show>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| Failure::invalid(error.body_text()))?;
    state
        .control()?
        .accounts
        .show(&name, query.keys)
        .await
        .map(Json)
        .map_err(|error| refused(&error))
}

/// `PATCH /admin/accounts/{name}`
pub(super) async fn change(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
    body: Sent<Change>,
) -> Answer {
    let Change { anonymous, versioning, object_lock, container_retention_days: days, sku, kind } =
        sent(body)?;
    if days.is_some_and(|days| days > RETENTION_DAYS_MAX) {
        return Err(Failure::invalid(format!("at most {RETENTION_DAYS_MAX} days")));
    }
    let given: Vec<(&str, &str, Value)> = [
        anonymous.map(|open| ("SetAnonymousAccess", "anonymous", json!(open))),
        versioning.map(|on| ("SetVersioning", "versioning", json!(on))),
        object_lock.map(|on| ("SetObjectLock", "object_lock", json!(on))),
        days.map(|days| ("SetContainerRetention", "container_retention_days", json!(days))),
        sku.map(|sku| ("SetAccountType", "sku", json!(sku.as_str()))),
        kind.map(|kind| ("SetAccountType", "kind", json!(kind.as_str()))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let operation = match given.as_slice() {
        [] => return Err(Failure::invalid("no setting of an account".to_owned())),
        [(operation, ..)] => operation,
        [("SetAccountType", ..), ("SetAccountType", ..)] => "SetAccountType",
        _ => "SetAccount",
    };
    let detail = given.iter().map(|(_, name, value)| (*name, value.clone())).collect();
    note.account(Thing::Account, operation, &name, detail);
    let settings = AccountSettings {
        anonymous,
        versioning,
        object_lock,
        container_retention_days: days,
        account_type: NamedType { sku, kind },
    };
    answered(state.control()?.accounts.set(&name, settings).await)
}

/// `POST /admin/accounts/{name}/rotate`
pub(super) async fn rotate(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
    body: Sent<Rotate>,
) -> Answer {
    let body = sent(body)?;
    note.account(Thing::Key, "RotateKey", &name, json!({ "key": body.key }));
    answered(state.control()?.accounts.rotate(&name, body.key, body.value).await)
}

/// `POST /admin/accounts/{name}/revoke`
pub(super) async fn revoke(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
) -> Answer {
    note.account(Thing::Key, "RevokeDelegationKeys", &name, Value::Null);
    answered(state.control()?.accounts.revoke_delegation(&name).await)
}

/// `GET /admin/accounts/{name}/grants`
pub(super) async fn assignments(
    State(state): State<AdminState>,
    Path(name): Path<String>,
) -> Result<Json<Vec<AssignmentView>>, Failure> {
    answered(state.control()?.accounts.assignments(&name).await)
}

/// `POST /admin/accounts/{name}/grants`
pub(super) async fn assign(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
    body: Sent<AssignmentView>,
) -> Result<Json<AssignmentView>, Failure> {
    let body = sent(body)?;
    note.account(Thing::Grant, "GrantRole", &name, json!(body));
    answered(state.control()?.accounts.assign(&name, &body).await)
}

/// `POST /admin/accounts/{name}/grants/revoke`
pub(super) async fn unassign(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
    body: Sent<AssignmentView>,
) -> Result<Json<AssignmentView>, Failure> {
    let body = sent(body)?;
    note.account(Thing::Grant, "RevokeRole", &name, json!(body));
    answered(state.control()?.accounts.unassign(&name, &body).await)
}

/// `DELETE /admin/accounts/{name}?force=true`
pub(super) async fn remove(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    note: Note,
    query: Result<Query<Remove>, QueryRejection>,
) -> Result<StatusCode, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid(error.body_text()))?;
    let detail = json!({ "force": query.force });
    note.account(Thing::Account, "DeleteAccount", &name, detail);
    let removed = state.control()?.accounts.remove(&name, query.force, &note).await;
    removed.map(|()| StatusCode::NO_CONTENT).map_err(|error| refused(&error))
}

/// A parsed body, or why it could not be parsed.
pub(super) type Sent<T> = Result<Json<T>, JsonRejection>;

pub(super) fn sent<T>(body: Sent<T>) -> Result<T, Failure> {
    body.map(|Json(body)| body).map_err(|error| Failure::invalid(error.body_text()))
}

pub(super) fn answered<T>(done: Result<T, StoreError>) -> Result<Json<T>, Failure> {
    done.map(Json).map_err(|error| refused(&error))
}

pub(super) fn refused(error: &StoreError) -> Failure {
    use StoreError as E;
    let (status, code) = match error {
        E::Name(_)
        | E::Key(_)
        | E::Published
        | E::Role(_)
        | E::ContainerName(_)
        | E::Principal
        | E::UserName(_)
        | E::DisplayName
        | E::AccessKeyId(_)
        | E::ScopeName(_)
        | E::SecretKey
        | E::UserIssuer
        | E::Type(_)
        | E::NoIssuer
        | E::WhichIssuer(_)
        | E::UnknownIssuer(..) => (StatusCode::BAD_REQUEST, "Invalid"),
        E::NoAssignment(_) => (StatusCode::NOT_FOUND, "NoSuchGrant"),
        E::TooManyAssignments(_) => (StatusCode::CONFLICT, "TooManyGrants"),
        E::NoUser(..) => (StatusCode::NOT_FOUND, "NoSuchUser"),
        E::UserExists(..) => (StatusCode::CONFLICT, "UserExists"),
        E::UserConfigured(..) => (StatusCode::CONFLICT, "UserConfigured"),
        E::AccessKeyTaken(_) => (StatusCode::CONFLICT, "AccessKeyExists"),
        E::TooManyUsers(_) => (StatusCode::CONFLICT, "TooManyUsers"),
        E::NoScope(..) => (StatusCode::NOT_FOUND, "NoSuchScope"),
        E::ScopeExists(..) => (StatusCode::CONFLICT, "ScopeExists"),
        E::TooManyScopes(_) => (StatusCode::CONFLICT, "TooManyScopes"),
        E::NotFound(_) => (StatusCode::NOT_FOUND, "NoSuchAccount"),
        E::Exists(_) => (StatusCode::CONFLICT, "AccountExists"),
        E::Configured(_) => (StatusCode::CONFLICT, "AccountConfigured"),
        E::NotEmpty(..) => (StatusCode::CONFLICT, "AccountNotEmpty"),
        E::Index(index::Error::Full(_)) | E::Container(_, index::Error::Full(_)) => {
            (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage")
        }
        E::Locked(..) => (StatusCode::CONFLICT, "ContainerLocked"),
        E::NotVersioned(_) => (StatusCode::CONFLICT, "NotVersioned"),
        E::OtherTiers(..) => (StatusCode::CONFLICT, "OtherTiers"),
        E::Container(..) => (StatusCode::CONFLICT, "ContainerNotDeleted"),
        E::Random(_) | E::Sealed(..) | E::Index(_) | E::Coordinator(_) => {
            tracing::error!(%error, "an admin command failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Failed")
        }
    };
    Failure::new(status, code, error.to_string())
}
