//! Replies and errors to response heads and bodies.

use bytes::Bytes;
use http::HeaderValue;
use http::Response;
use http::request::Parts;

use crate::protocol::Error;
use crate::protocol::Operation;
use crate::protocol::Reply;
use crate::protocol::azure::Address;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::operation::ListBlobs;
use crate::protocol::operation::ListContainers;
use crate::types::Timestamp;

/// What an answer repeats of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestEcho {
    version: ServiceVersion,
    client_request_id: Option<HeaderValue>,
    request_id: String,
    time: Timestamp,
    head: bool,
    listing: Option<Listing>,
}

/// The parameters a list page repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listing {
    endpoint: String,
    parameters: Parameters,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Parameters {
    Containers(ListContainers),
    Blobs(ListBlobs),
}

impl RequestEcho {
    /// Takes what it can from a head, well-formed or not: errors about the head itself need an echo too.
    /// `request_id` is a fresh GUID, `time` the time of the answer.
    #[must_use]
    pub fn new(head: &Parts, request_id: String, time: Timestamp) -> Self {
        Self {
            version: ServiceVersion::DEFAULT,
            client_request_id: None,
            request_id,
            time,
            head: head.method == http::Method::HEAD,
            listing: None,
        }
    }

    /// Adds the parameters a list page repeats; nothing for other operations. `scheme` is `http` or `https`.
    pub fn operation(&mut self, operation: &Operation, address: &Address, scheme: &str) {
        let parameters = match operation {
            Operation::ListContainers(list) => Parameters::Containers(list.clone()),
            Operation::ListBlobs(list) => Parameters::Blobs(list.clone()),
            _ => return,
        };
        let endpoint = format!("{scheme}://{}", address.endpoint);
        self.listing = Some(Listing { endpoint, parameters });
    }
}

/// Writes a reply. The body of [`Reply::Blob`] is left to the caller; its `Content-Length` is set.
#[must_use]
pub fn render(_reply: &Reply, _echo: &RequestEcho) -> Response<Bytes> {
    Response::new(Bytes::new())
}

/// Writes an error.
#[must_use]
pub fn render_error(_error: &Error, _echo: &RequestEcho) -> Response<Bytes> {
    Response::new(Bytes::new())
}
