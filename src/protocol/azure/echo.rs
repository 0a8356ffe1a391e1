//! The parts of a request that its answer repeats.

use http::HeaderValue;
use http::request::Parts;

use crate::protocol::azure::Context;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::FindBlobs;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::types::Timestamp;

/// The parts of a request that its answer repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestEcho {
    pub(super) version: ServiceVersion,
    pub(super) client_request_id: Option<HeaderValue>,
    pub(super) request_id: String,
    pub(super) time: Timestamp,
    /// Whether the method is HEAD.
    pub(super) head: bool,
    pub(super) listing: Option<Listing>,
}

/// The parameters a list page repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) endpoint: String,
    pub(super) parameters: Parameters,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    Containers(ListContainers),
    Blobs(ListBlobs),
    Find(FindBlobs),
}

impl RequestEcho {
    /// `x-ms-request-id`.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Reads as much as possible from a head, well-formed or not: errors about the head itself need
    /// an echo too. `request_id` is a fresh GUID, `time` the time of the answer.
    #[must_use]
    pub fn new(head: &Parts, request_id: String, time: Timestamp) -> Self {
        let Context { version, client_request_id } = Context::lenient(head);
        let head = head.method == http::Method::HEAD;
        Self { version, client_request_id, request_id, time, head, listing: None }
    }

    /// The request's id and the time of the answer, as pages of errors show them.
    pub(super) fn stamp(&self) -> (String, String) {
        (self.request_id.clone(), self.time.to_iso())
    }

    /// Adds the parameters a list page repeats; nothing for other operations. `scheme` is `http` or
    /// `https`.
    pub fn operation(&mut self, operation: &Operation, address: &Address, scheme: &str) {
        let parameters =
            if let Operation::Account(AccountOperation::ListContainers(list)) = operation {
                Parameters::Containers(list.clone())
            } else if let Operation::Container(ContainerOperation::ListBlobs(list)) = operation {
                Parameters::Blobs(list.clone())
            } else if let Operation::Account(AccountOperation::FindBlobs(find)) = operation {
                Parameters::Find(find.clone())
            } else {
                return;
            };
        let endpoint = format!("{scheme}://{}", address.endpoint);
        self.listing = Some(Listing { endpoint, parameters });
    }
}
