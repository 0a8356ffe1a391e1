//! The front end's lines of the audit log. While the log is off, a request pays one branch.

mod deletions;
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
use crate::frontend::observe::RequestContext;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::LeaseAction;
use crate::types::PublicAccess;
use crate::types::request;

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
            trace_id: request::current_trace().map(|trace| trace.to_string()),
            ..Entry::default()
        };
        let (log, clock) = (self.audit_log.clone(), Arc::clone(&self.env.clock));
        Box::new(Draft::new(log, clock, begun, entry))
    }

    /// Records the sender, the operation and, if it has a line, the change that it will make.
    pub(super) fn note_change(
        &self,
        operation: &Operation,
        context: &mut RequestContext,
        start: RequestStart<'_>,
    ) {
        if !self.audit_log.is_on() {
            return;
        }
        let change = change(operation);
        if change.is_some() && context.draft.is_none() {
            context.draft = Some(self.draft_at(start.arrival.address().as_ref(), start));
        }
        if let Some(draft) = &mut context.draft {
            if let Some(meant) = &context.meant {
                draft.about(resource(meant));
            }
            draft.asked(context.operation, context.principal.clone(), change);
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
    let (of, detail) = match operation {
        Operation::Account(operation) => of_account(operation)?,
        Operation::Container(operation) => of_container(operation)?,
        Operation::Content(_) | Operation::Blob(_) | Operation::Upload(_) => return None,
    };
    Some(Change { of, detail })
}

const fn of_account(operation: &AccountOperation) -> Option<(Thing, Value)> {
    use AccountOperation as O;
    match operation {
        O::SetServiceProperties { .. } => Some((Thing::Account, Value::Null)),
        O::GetUserDelegationKey { .. } => Some((Thing::Key, Value::Null)),
        O::GetAccountInformation
        | O::GetServiceProperties
        | O::GetServiceStats
        | O::ListContainers(_)
        | O::FindBlobs(_)
        | O::Batch(_) => None,
    }
}

fn of_container(operation: &ContainerOperation) -> Option<(Thing, Value)> {
    use ContainerOperation as O;
    match operation {
        O::Setting(setting) if setting.is_read() => None,
        O::Setting(_) => Some((Thing::Policy, Value::Null)),
        O::SetContainerMetadata { .. }
        | O::DeleteContainer { .. }
        | O::DeleteIfEmpty { .. }
        | O::RestoreContainer { .. } => Some((Thing::Container, Value::Null)),
        O::CreateContainer { public_access, .. } => {
            Some((Thing::Container, access(*public_access)))
        }
        O::LeaseContainer { action, .. } => {
            Some((Thing::Container, json!({ "lease": verb(action) })))
        }
        O::SetContainerAcl { public_access, .. } => Some((Thing::Policy, access(*public_access))),
        O::SetContainerGrants { .. } => Some((Thing::Policy, Value::Null)),
        O::GetContainer { .. }
        | O::GetContainerAcl { .. }
        | O::GetContainerGrants { .. }
        | O::ListBlobs(_)
        | O::DeleteBlobs(_) => None,
    }
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
