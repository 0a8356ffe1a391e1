//! What the admin listener tells the audit log: each command that changes something, and every
//! other one when all requests have lines. What is logged while a command is carried out carries
//! its id.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderValue;
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

/// The header with a command's id.
const REQUEST_ID: &str = "x-request-id";

/// Where the client of a connection is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub(super) SocketAddr);

/// What a command is about, told by whoever carries it out before they do.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    about: Arc<Mutex<Option<About>>>,
    /// The log, and what is known of the command.
    told: Option<(AuditLog, Entry)>,
}

#[derive(Debug)]
struct About {
    operation: &'static str,
    account: Option<String>,
    resource: Option<String>,
    change: Option<Change>,
}

impl Note {
    /// A change of an account or of something in it.
    pub(super) fn account(&self, of: Thing, operation: &'static str, name: &str, detail: Value) {
        self.set(operation, (Some(name.to_owned()), None), Change { of, detail });
    }

    /// A change of something else.
    pub(super) fn thing(&self, of: Thing, operation: &'static str, name: String, detail: Value) {
        self.set(operation, (None, Some(name)), Change { of, detail });
    }

    fn set(
        &self,
        operation: &'static str,
        (account, resource): (Option<String>, Option<String>),
        change: Change,
    ) {
        let about = About { operation, account, resource, change: Some(change) };
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = Some(about);
    }

    /// A change that is a part of the command and has a line of its own, told before it is made.
    pub(super) fn part(
        &self,
        (of, operation): (Thing, &'static str),
        (account, resource): (&str, &str),
    ) -> Part {
        let told = self.told.clone().filter(|(log, _)| log.is_on()).map(|(log, entry)| {
            let entry = Entry {
                // Only who showed the token got as far.
                principal: Principal::AdminToken,
                operation: operation.into(),
                account: Some(account.to_owned()),
                resource: Some(resource.to_owned()),
                ..entry
            };
            (log, entry, Change { of, detail: Value::Null })
        });
        Part { told }
    }

    fn take(&self) -> Option<About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The line of a part of a command. Dropped without an end, it tells that the part may have been
/// made: its client may leave while it is.
#[derive(Debug)]
pub(super) struct Part {
    told: Option<(AuditLog, Entry, Change)>,
}

impl Part {
    /// It was made.
    pub(super) async fn made(mut self) {
        if let Some((log, entry, change)) = self.told.take() {
            log.change(&entry, &change).await;
        }
    }

    /// It was refused and has changed nothing.
    pub(super) fn refused(mut self) {
        self.told = None;
    }

    /// It failed, and nobody knows whether it was made.
    pub(super) fn in_doubt(self) {}
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some((log, entry, mut change)) = self.told.take() {
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

/// Who tells; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    pub(super) log: AuditLog,
    pub(super) env: Env,
}

/// The lines of a command in the making, written when it is dropped at the latest.
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
        // Only who showed the token got as far.
        self.entry.principal = Principal::AdminToken;
        self.entry.operation = about.operation.into();
        self.entry.account = about.account;
        self.entry.resource = about.resource;
        about.change
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

/// Tells what a command did once it is answered, and gives it an id.
pub(super) async fn tell(
    State(teller): State<Teller>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if !path.starts_with("/admin/") {
        return next.run(request).await;
    }
    let id = id(&teller.env);
    let address = request.extensions().get::<ClientAddress>().map(|at| at.0.to_string());
    let operation = format!("{} {path}", request.method()).into();
    let entry = Entry { address, operation, request_id: Some(id.to_string()), ..Entry::default() };
    let (log, clock) = (teller.log.clone(), Arc::clone(&teller.env.clock));
    let note = Note { about: Arc::default(), told: Some((log.clone(), entry.clone())) };
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
        draft.entry.principal = Principal::AdminToken;
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
