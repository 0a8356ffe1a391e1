//! The front end's lines of the audit log. While the log is off, a request pays one branch.

pub(in crate::frontend) mod draft;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Thing;
use crate::frontend::audit_log::draft::Draft;
use crate::frontend::dialect::Arrival;
use crate::frontend::observe::Seen;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::LeaseAction;
use crate::types::PublicAccess;

/// A request that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestStart<'a> {
    pub(super) arrival: Arrival<'a>,
    /// The id that it was given.
    pub(super) id: &'a str,
    /// When it arrived, by the monotonic clock.
    pub(super) begun: Duration,
}

impl FrontEnd {
    /// A draft for a request, if every request has a line.
    pub(super) fn draft(&self, start: RequestStart<'_>) -> Option<Box<Draft>> {
        let wanted = self.audit_log.has_requests();
        wanted.then(|| self.draft_at(start.arrival.address().as_ref(), start))
    }

    /// A draft for a request about the resource of an address.
    pub(super) fn draft_at(
        &self,
        address: Option<&Address>,
        RequestStart { arrival, id, begun }: RequestStart<'_>,
    ) -> Box<Draft> {
        let entry = Entry {
            account: address.map(|address| address.account.as_str().to_owned()),
            address: Some(arrival.peer.address.to_string()),
            operation: "Refused".into(),
            resource: address.and_then(resource),
            request_id: Some(id.to_owned()),
            ..Entry::default()
        };
        let (log, clock) = (self.audit_log.clone(), Arc::clone(&self.env.clock));
        Box::new(Draft::new(log, clock, begun, entry))
    }

    /// Records the sender, the operation and, if it has a line, the change that it will make.
    pub(super) fn note_change(
        &self,
        operation: &Operation,
        seen: &mut Seen,
        start: RequestStart<'_>,
    ) {
        if !self.audit_log.is_on() {
            return;
        }
        let change = change(operation);
        if change.is_some() && seen.draft.is_none() {
            seen.draft = Some(self.draft_at(start.arrival.address().as_ref(), start));
        }
        if let Some(draft) = &mut seen.draft {
            draft.asked(seen.operation, seen.principal.clone(), change);
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

/// The change that an operation makes, unless it changes only blobs.
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
