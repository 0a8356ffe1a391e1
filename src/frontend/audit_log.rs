//! What the front end tells the audit log. Costs a branch while that is off.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::StatusCode;
use http::request::Parts;
use serde_json::Value;
use serde_json::json;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Thing;
use crate::env::Clock;
use crate::frontend::observe::Seen;
use crate::frontend::service::FrontEnd;
use crate::protocol::Operation;
use crate::protocol::azure::Address;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::LeaseAction;
use crate::types::Peer;
use crate::types::PublicAccess;

/// The lines of one request in the making. They are written when it is dropped, so that a request
/// whose client leaves has them too.
#[derive(Debug)]
pub(super) struct Draft {
    log: AuditLog,
    clock: Arc<dyn Clock>,
    /// By the monotonic clock.
    begun: Duration,
    entry: Entry,
    /// The change that it makes, until its line is written.
    change: Option<Change>,
    /// Bytes of the answer, once it is known.
    answer: Option<u64>,
}

impl Draft {
    /// Takes what is known once there is an answer, and writes the line of a change: what was
    /// refused changed nothing, and of what failed nobody knows.
    pub(super) async fn answered(
        &mut self,
        seen: &mut Seen,
        (bytes_in, bytes_out): (u64, u64),
        (status, headers): (StatusCode, &HeaderMap),
    ) {
        self.refused(bytes_out, (status, headers));
        self.entry.bytes_in = bytes_in;
        self.entry.operation = seen.operation.into();
        self.entry.principal = std::mem::take(&mut seen.principal);
        self.take_time();
        let Some(change) = self.change.take() else { return };
        if status.is_success() || status.is_server_error() {
            self.log.change(&self.entry, &change).await;
        }
    }

    /// Takes what is known of an answer to a request that changes nothing.
    pub(super) fn refused(&mut self, bytes: u64, (status, headers): (StatusCode, &HeaderMap)) {
        let code = headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        self.answer = Some(bytes);
        self.entry.status = Some(status.as_u16());
        self.entry.code = code.map(str::to_owned);
    }

    /// Counts bytes of the answer that were given out.
    pub(super) const fn sent(&mut self, bytes: u64) {
        self.entry.bytes_out += bytes;
    }

    fn take_time(&mut self) {
        let took = self.clock.monotonic().saturating_sub(self.begun);
        self.entry.ms = (took.as_secs_f64() * 1e6).round() / 1e3;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.take_time();
        self.entry.cut = self.answer.is_none_or(|bytes| self.entry.bytes_out < bytes);
        if let Some(change) = self.change.take() {
            self.log.change_now(&self.entry, &change);
        }
        self.log.request(&self.entry);
    }
}

impl FrontEnd {
    /// A draft for a request, if every request has a line.
    pub(super) fn draft(
        &self,
        (head, peer): (&Parts, Peer),
        (id, begun): (&str, Duration),
    ) -> Option<Box<Draft>> {
        let wanted = self.audit_log.has_requests();
        wanted.then(|| self.draft_at(self.address(head).as_ref(), peer, (id, begun)))
    }

    /// A draft for a request about what an address names.
    pub(super) fn draft_at(
        &self,
        address: Option<&Address>,
        peer: Peer,
        (id, begun): (&str, Duration),
    ) -> Box<Draft> {
        let entry = Entry {
            account: address.map(|address| address.account.as_str().to_owned()),
            address: Some(peer.address.to_string()),
            operation: "Refused".into(),
            resource: address.and_then(resource),
            request_id: Some(id.to_owned()),
            ..Entry::default()
        };
        let (log, clock) = (self.audit_log.clone(), Arc::clone(&self.env.clock));
        Box::new(Draft { log, clock, begun, entry, change: None, answer: None })
    }

    /// Notes who asks for what, and the change that the operation is about to make, if it is one
    /// that has a line.
    pub(super) fn note_change(
        &self,
        operation: &Operation,
        (head, peer): (&Parts, Peer),
        (seen, request): (&mut Seen, (&str, Duration)),
    ) {
        if !self.audit_log.is_on() {
            return;
        }
        let change = change(operation);
        if change.is_some() && seen.draft.is_none() {
            seen.draft = Some(self.draft_at(self.address(head).as_ref(), peer, request));
        }
        // Now, since its client may leave at any time.
        if let Some(draft) = &mut seen.draft {
            draft.entry.operation = seen.operation.into();
            draft.entry.principal = seen.principal.clone();
            draft.change = change;
        }
    }
}

/// `CONTAINER` or `CONTAINER/BLOB`.
fn resource(address: &Address) -> Option<String> {
    let container = address.container.as_ref().map(ContainerName::as_str)?;
    Some(match address.blob.as_ref().map(BlobName::as_str) {
        Some(blob) => format!("{container}/{blob}"),
        None => container.to_owned(),
    })
}

/// What an operation changes besides blobs.
fn change(operation: &Operation) -> Option<Change> {
    use Operation as O;
    let plain = matches!(
        operation,
        O::SetContainerMetadata { .. } | O::DeleteContainer { .. } | O::RestoreContainer { .. }
    );
    let (of, detail) = if plain {
        (Thing::Container, Value::Null)
    } else if let O::CreateContainer { public_access, .. } = operation {
        (Thing::Container, access(*public_access))
    } else if let O::LeaseContainer { action, .. } = operation {
        (Thing::Container, json!({ "lease": verb(action) }))
    } else if let O::SetContainerAcl { public_access, .. } = operation {
        (Thing::Policy, access(*public_access))
    } else if let O::SetServiceProperties { .. } = operation {
        (Thing::Account, Value::Null)
    } else if let O::GetUserDelegationKey { .. } = operation {
        (Thing::Key, Value::Null)
    } else {
        return None;
    };
    Some(Change { of, detail })
}

fn access(access: PublicAccess) -> Value {
    let word = match access {
        PublicAccess::Private => "private",
        PublicAccess::Blob => "blob",
        PublicAccess::Container => "container",
    };
    json!({ "public_access": word })
}

const fn verb(action: &LeaseAction) -> &'static str {
    match action {
        LeaseAction::Acquire { .. } => "acquire",
        LeaseAction::Renew { .. } => "renew",
        LeaseAction::Change { .. } => "change",
        LeaseAction::Release { .. } => "release",
        LeaseAction::Break { .. } => "break",
    }
}
