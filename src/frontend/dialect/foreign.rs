//! A dialect that is not part of this program. A test provides one, to show that operations and the
//! index serve it without a change.

use std::fmt::Debug;

use bytes::Bytes;
use http::Method;
use http::Response;
use http::Uri;
use http::request::Parts;

use crate::auth::Action;
use crate::protocol::model::Address;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::Parsed;
use crate::types::Timestamp;

/// The parts of a request that an answer may repeat.
#[derive(Clone, Debug)]
pub struct ForeignEcho {
    /// The request's id.
    pub id: String,
    /// The time of the answer.
    pub time: Timestamp,
    /// The method.
    pub method: Method,
    /// The URL.
    pub uri: Uri,
}

impl ForeignEcho {
    pub(super) fn new(head: &Parts, id: String, time: Timestamp) -> Self {
        Self { id, time, method: head.method.clone(), uri: head.uri.clone() }
    }
}

/// The sender of a request, as the dialect identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The owner of the account, who may do everything in it.
    Owner,
    /// An anonymous caller: may read only what has public access.
    Anyone,
}

/// Names of headers that logs repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    /// The client's id of a request.
    pub client_request_id: &'static str,
    /// The server's id of a request, in the answer.
    pub request_id: &'static str,
    /// The error code of an answer.
    pub error_code: &'static str,
}

/// A dialect. It finds the address of a request, identifies its sender, checks that the sender is
/// permitted to do what the head requests, and only then parses the request.
pub trait Foreign: Debug + Send + Sync {
    /// Whether a request is in this dialect.
    fn recognises(&self, head: &Parts) -> bool;

    /// The headers that logs repeat.
    fn headers(&self) -> HeaderNames;

    /// The account, container and blob that the URL names.
    ///
    /// # Errors
    /// Why it names none.
    fn address(&self, head: &Parts) -> Result<Address, Refusal>;

    /// Identifies the sender of the request.
    ///
    /// # Errors
    /// Why the sender's proof is refused.
    fn identify(&self, head: &Parts, address: &Address) -> Result<Sender, Refusal>;

    /// The action that the sender must be permitted to do before the rest of the head is parsed.
    ///
    /// # Errors
    /// When the head requests no known operation.
    fn action(&self, head: &Parts, address: &Address) -> Result<Action, Refusal>;

    /// The operation of the request.
    ///
    /// # Errors
    /// The first thing that is wrong with the head.
    fn parse(&self, head: &Parts, address: &Address) -> Result<Parsed, Refusal>;

    /// The answer to a request that was carried out. The body of [`Reply::Blob`] is left to the
    /// caller; its `Content-Length` is set here.
    fn render(&self, reply: &Reply, echo: &ForeignEcho) -> Response<Bytes>;

    /// The answer to a request that was refused.
    fn render_refusal(&self, refusal: &Refusal, echo: &ForeignEcho) -> Response<Bytes>;
}
