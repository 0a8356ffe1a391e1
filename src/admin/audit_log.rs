//! The audit log lines of the admin listener: one for each command that changes something, and one
//! for every other command if requests are logged. Log lines written during a command carry its id.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use serde_json::Value;
use serde_json::json;
use uuid::Builder;
use uuid::Uuid;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::env::Clock;
use crate::env::Env;
use crate::env::identified;
use crate::types::AccountName;

/// The header with a command's id.
const REQUEST_ID: &str = "x-request-id";

/// The address of a connection's client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub(super) SocketAddr);

/// The subject of a command. The handler sets it before it carries the command out.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    about: Arc<Mutex<Option<About>>>,
    /// `None` in tests without an audit log.
    command: Option<Command>,
}

/// The log, and the entry of a command.
#[derive(Clone, Debug)]
struct Command {
    log: AuditLog,
    entry: Entry,
}

#[derive(Debug)]
struct About {
    operation: &'static str,
    account: Option<String>,
    resource: Option<String>,
    principal: Principal,
    change: Change,
}

impl Note {
    /// A change of an account or of something in it.
    pub(super) fn account(&self, of: Thing, operation: &'static str, name: &str, detail: Value) {
        let about = About {
            operation,
            account: Some(name.to_owned()),
            resource: None,
            // Only callers with the token reach a handler.
            principal: Principal::AdminToken,
            change: Change { of, detail },
        };
        self.set(about);
    }

    /// A change of something else.
    pub(super) fn thing(&self, of: Thing, operation: &'static str, name: String, detail: Value) {
        let (change, principal) = (Change { of, detail }, Principal::AdminToken);
        self.set(About { operation, account: None, resource: Some(name), principal, change });
    }

    /// A change of the sessions of the console.
    pub(super) fn session(&self, operation: &'static str, principal: Principal) {
        let change = Change { of: Thing::Session, detail: Value::Null };
        self.set(About { operation, account: None, resource: None, principal, change });
    }

    fn set(&self, about: About) {
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = Some(about);
    }

    /// A change that is a part of the command and has a line of its own. Call it before the change
    /// is made.
    pub(super) fn part(
        &self,
        of: Thing,
        operation: &'static str,
        account: &AccountName,
        resource: &str,
    ) -> Part {
        let command = self.command.clone().filter(|command| command.log.is_on());
        let line = command.map(|Command { log, entry }| {
            let entry = Entry {
                // Only callers with the token reach a handler.
                principal: Principal::AdminToken,
                operation: operation.into(),
                account: Some(account.as_str().to_owned()),
                resource: Some(resource.to_owned()),
                ..entry
            };
            PendingLine { log, entry, change: Change { of, detail: Value::Null } }
        });
        Part { line }
    }

    fn take(&self) -> Option<About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The line of a part of a command. If it is dropped before the outcome is known, for example
/// because the client disconnects, the line says that the outcome is unknown.
#[derive(Debug)]
pub(super) struct Part {
    line: Option<PendingLine>,
}

/// A line that is not written yet.
#[derive(Debug)]
struct PendingLine {
    log: AuditLog,
    entry: Entry,
    change: Change,
}

impl Part {
    /// The change was made.
    pub(super) async fn made(mut self) {
        if let Some(PendingLine { log, entry, change }) = self.line.take() {
            log.change(&entry, &change).await;
        }
    }

    /// The change was refused, and nothing has changed.
    pub(super) fn refused(mut self) {
        self.line = None;
    }

    /// The change failed with an unknown outcome.
    pub(super) fn in_doubt(self) {}
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(PendingLine { log, entry, mut change }) = self.line.take() {
            change.detail = json!({ "outcome": "unknown" });
            log.change_now(&entry, &change);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Note {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// State of the middleware that writes the lines; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CommandLog {
    pub(super) log: AuditLog,
    pub(super) env: Env,
}

/// The lines of a running command. Dropping it writes those that are not written yet.
struct Draft {
    log: AuditLog,
    clock: Arc<dyn Clock>,
    begun: Duration,
    entry: Entry,
    note: Note,
}

impl Draft {
    fn about(&mut self) -> Option<Change> {
        let took = self.clock.monotonic().saturating_sub(self.begun);
        self.entry.ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        let about = self.note.take()?;
        self.entry.principal = about.principal;
        self.entry.operation = about.operation.into();
        self.entry.account = about.account;
        self.entry.resource = about.resource;
        Some(about.change)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(change) = self.about() {
            self.entry.cut = true;
            self.log.change_now(&self.entry, &change);
        }
        self.log.request(&self.entry);
    }
}

/// Writes the lines of a command when it is answered, and gives the command an id.
pub(super) async fn record(
    State(commands): State<CommandLog>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_login = request.method() == Method::POST && matches!(path, "/login" | "/logout");
    if !path.starts_with("/admin/") && !is_login {
        return next.run(request).await;
    }
    let id = id(&commands.env);
    let address = request.extensions().get::<ClientAddress>().map(|at| at.0.to_string());
    let operation = format!("{} {path}", request.method()).into();
    let entry = Entry { address, operation, request_id: Some(id.to_string()), ..Entry::default() };
    let (log, clock) = (commands.log.clone(), Arc::clone(&commands.env.clock));
    let command = Command { log: log.clone(), entry: entry.clone() };
    let note = Note { about: Arc::default(), command: Some(command) };
    let begun = clock.monotonic();
    let mut draft = Draft { log, clock, begun, entry, note: note.clone() };
    request.extensions_mut().insert(note);
    let mut response = identified(Some(id), next.run(request)).await;
    let status = response.status();
    draft.entry.status = Some(status.as_u16());
    if let Some(change) = draft.about()
        && (status.is_success() || status.is_server_error())
    {
        draft.log.change(&draft.entry, &change).await;
    }
    if status.is_success() {
        let by_session = response.extensions_mut().remove::<Principal>();
        draft.entry.principal = by_session.unwrap_or(Principal::AdminToken);
    }
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn id(env: &Env) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&env.rand.next_u64().to_be_bytes());
    bytes[8..].copy_from_slice(&env.rand.next_u64().to_be_bytes());
    Builder::from_random_bytes(bytes).into_uuid()
}
