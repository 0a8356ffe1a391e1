//! A dialect that is not of this program: a test brings one along, to see that operations and the
//! index serve it without learning about it.

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

/// What an answer may repeat of its request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request's id.
    pub id: String,
    /// The time of the answer.
    pub time: Timestamp,
    /// The method.
    pub method: Method,
    /// The URL.
    pub uri: Uri,
}

impl Asked {
    pub(super) fn new(head: &Parts, id: String, time: Timestamp) -> Self {
        Self { id, time, method: head.method.clone(), uri: head.uri.clone() }
    }
}

/// Who sends a request, as the dialect believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Whoever may do everything in the account.
    Owner,
    /// Nobody says who: only what is open to the public may be read.
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

/// A dialect. A request is addressed, its sender identified and permitted to do what the head asks
/// for, and only then parsed.
pub trait Foreign: Debug + Send + Sync {
    /// Whether a request is in this dialect.
    fn recognises(&self, head: &Parts) -> bool;

    /// The headers that logs repeat.
    fn headers(&self) -> HeaderNames;

    /// What the URL names.
    ///
    /// # Errors
    /// Why it names nothing.
    fn address(&self, head: &Parts) -> Result<Address, Refusal>;

    /// Who sends the request.
    ///
    /// # Errors
    /// Why the proof is not one.
    fn identify(&self, head: &Parts, address: &Address) -> Result<Sender, Refusal>;

    /// What the sender has to be permitted before the rest of the head is looked at.
    ///
    /// # Errors
    /// When the head asks for nothing that is known.
    fn action(&self, head: &Parts, address: &Address) -> Result<Action, Refusal>;

    /// What is asked for.
    ///
    /// # Errors
    /// The first thing that is wrong with the head.
    fn parse(&self, head: &Parts, address: &Address) -> Result<Parsed, Refusal>;

    /// The answer to a request that was carried out. The body of [`Reply::Blob`] is left to the
    /// caller; its `Content-Length` is set here.
    fn render(&self, reply: &Reply, asked: &Asked) -> Response<Bytes>;

    /// The answer to a request that was refused.
    fn render_refusal(&self, refusal: &Refusal, asked: &Asked) -> Response<Bytes>;
}
