//! Dialects at the front end: the one place that knows which protocol a request speaks. The rest of
//! the front end names no dialect (`tests/it/layering.rs`).
//!
//! 1. `Dialects::of` chooses a `Dialect`, once for each request. Only this folder matches on it
//!    and on the `Echo` that it makes.
//! 2. `admit.rs` has the order of checks, which is the dialect's; `identify.rs` identifies the
//!    sender of an Azure request.
//! 3. `echo.rs` renders replies and refusals, with the parts of the request that they repeat.
//! 4. `framing.rs` has bodies that carry their checksums; `source.rs` and `outside.rs` write
//!    the requests of a copy for its source.
//! 5. Only Azure has `batch.rs`, requests in a request, `website.rs`, the web endpoint,
//!    `backslash.rs`, names that Azure interprets differently than they are sent, and
//!    `header_case.rs` with `spelling.rs`, the case of metadata names.
//! 6. `s3/` recognises, identifies and admits the requests of S3 and verifies their bodies. The
//!    fields of a form are read there first (`s3/forms.rs`).
//! 7. `foreign.rs` is the interface of a dialect that a test provides. Only builds with debug
//!    assertions take one (ADR 0031).
//!
//! Not here: the bytes of a dialect, which `protocol` reads and writes. Each dialect has a variant
//! here.

pub(in crate::frontend) mod admit;
mod backslash;
pub(in crate::frontend) mod batch;
pub(in crate::frontend) mod echo;
mod foreign;
pub mod framing;
pub mod header_case;
mod identify;
pub(in crate::frontend) mod outside;
pub(in crate::frontend) mod s3;
pub(in crate::frontend) mod source;
pub mod spelling;
pub(in crate::frontend) mod website;

#[cfg(debug_assertions)]
use std::sync::Arc;

use http::HeaderMap;
use http::header::HOST;
use http::request::Parts;

use crate::frontend::dialect::echo::Echo;
use crate::frontend::dialect::framing::Encoder;
use crate::protocol::azure;
use crate::protocol::azure::structured;
use crate::protocol::model::Address;
use crate::protocol::model::OPERATION_NAMES;
use crate::protocol::model::Refusal;
use crate::protocol::s3::S3Echo;
use crate::protocol::s3::address as s3_address;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::sts;
use crate::types::Peer;
use crate::types::Protocols;
use crate::types::Timestamp;

pub use crate::protocol::azure::Addressing;
pub(in crate::frontend) use crate::protocol::azure::WebAddress as Site;
#[doc(hidden)]
pub use foreign::{Foreign, ForeignEcho, HeaderNames, Sender};
pub use s3::S3Settings;
pub(in crate::frontend) use s3::forms;
pub(in crate::frontend) use s3::sts::serve as answer_token_call;

/// The dialects that a front end speaks.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    /// How host names name accounts in Azure's dialect.
    pub addressing: Addressing,
    /// The settings of S3.
    pub s3: S3Settings,
    /// The dialect of a test. A release has none (ADR 0031).
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub foreign: Option<Arc<dyn Foreign>>,
}

impl Dialects {
    /// The dialect of a request.
    pub(in crate::frontend) fn of(&self, head: &Parts, protocols: Protocols) -> Dialect<'_> {
        if let Some(foreign) = self.of_a_test(head) {
            return foreign;
        }
        match protocols == Protocols::S3 || self.s3.recognises(head) {
            true => Dialect::S3(&self.s3),
            false => Dialect::Azure(&self.addressing),
        }
    }

    /// The dialect that a test provides, if the request speaks it.
    #[cfg(debug_assertions)]
    fn of_a_test(&self, head: &Parts) -> Option<Dialect<'_>> {
        let foreign = self.foreign.as_deref().filter(|foreign| foreign.recognises(head))?;
        Some(Dialect::Foreign(foreign))
    }

    /// A release speaks no dialect of a test.
    #[cfg(not(debug_assertions))]
    const fn of_a_test(&self, _: &Parts) -> Option<Dialect<'_>> {
        None
    }

    /// Whether a host names an account of this store.
    pub(in crate::frontend) fn are_served_under(&self, host: &str) -> bool {
        self.addressing.names_account(host) || self.s3.names(host)
    }
}

/// The dialect of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialect<'a> {
    /// Azure Blob REST.
    Azure(&'a Addressing),
    /// S3.
    S3(&'a S3Settings),
    /// The dialect of a test.
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "a release has none"))]
    Foreign(&'a dyn Foreign),
}

/// A request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// Its dialect.
    pub(crate) dialect: Dialect<'a>,
    /// Its head.
    pub(crate) head: &'a Parts,
    /// Its sender's address.
    pub(crate) peer: Peer,
}

impl Arrival<'_> {
    /// The account, container and blob that its URL names, if it names any.
    pub(in crate::frontend) fn address(&self) -> Option<Address> {
        self.dialect.address(self.head).ok()
    }
}

/// The names of operations in all dialects, as metrics, logs and the fault dial have them.
pub(in crate::frontend) fn operation_names() -> impl Iterator<Item = &'static str> {
    let of_s3 = S3Operation::ALL.iter().map(|operation| operation.name());
    OPERATION_NAMES.into_iter().chain(of_s3).chain(sts::CALL_NAMES)
}

/// Names of Azure's headers that logs repeat.
const AZURE_HEADERS: HeaderNames = HeaderNames {
    client_request_id: "x-ms-client-request-id",
    request_id: "x-ms-request-id",
    error_code: "x-ms-error-code",
};

/// Those of S3's headers.
const S3_HEADERS: HeaderNames = HeaderNames {
    client_request_id: "amz-sdk-invocation-id",
    request_id: "x-amz-request-id",
    error_code: "x-amz-error-code",
};

impl<'a> Dialect<'a> {
    /// The account, container and blob that the URL names.
    ///
    /// # Errors
    /// The dialect's: no account, a broken escape, a name that breaks the rules.
    pub(in crate::frontend) fn address(self, head: &Parts) -> Result<Address, Refusal> {
        match self {
            Self::Azure(addressing) => {
                azure::address(&head.method, &head.uri, host(head), addressing)
            }
            Self::S3(settings) => settings.address(head),
            Self::Foreign(foreign) => foreign.address(head),
        }
    }

    /// Whether the request announces a form, whose fields are read first.
    pub(in crate::frontend) fn has_form(self, head: &Parts) -> bool {
        match self {
            Self::S3(settings) => settings.has_form(head),
            Self::Azure(_) | Self::Foreign(_) => false,
        }
    }

    /// The refusal as the dialect reports it. If nothing exists at the address and Azure's rules
    /// forbid its name, Azure reports the violated rule (ADR 0030).
    pub(in crate::frontend) fn explain(
        self,
        refusal: Refusal,
        address: impl FnOnce() -> Option<Address>,
    ) -> Refusal {
        match self {
            Self::Azure(_) => azure::explain_missing(refusal, address),
            Self::S3(_) => s3_address::explain_missing(refusal, address),
            Self::Foreign(_) => refusal,
        }
    }

    /// The parts of a request that its answer repeats, with the request's id and the time of the
    /// answer. The head may be malformed.
    pub(in crate::frontend) fn echo(self, head: &Parts, id: String, time: Timestamp) -> Echo<'a> {
        match self {
            Self::Azure(_) => Echo::Azure(azure::RequestEcho::new(head, id, time)),
            Self::S3(_) => Echo::S3(Box::new(S3Echo::new(head, id, time))),
            Self::Foreign(foreign) => Echo::Foreign(foreign, ForeignEcho::new(head, id, time)),
        }
    }

    /// Whether each container has cross-origin rules of its own; else the account has them.
    pub(in crate::frontend) const fn has_rules_of_containers(self) -> bool {
        match self {
            Self::S3(_) => true,
            Self::Azure(_) | Self::Foreign(_) => false,
        }
    }

    /// The document of a website that the URL names; `None` for other requests.
    pub(in crate::frontend) fn site(self, head: &Parts) -> Option<Site> {
        match self {
            Self::Azure(addressing) => azure::web_address(&head.uri, host(head), addressing),
            Self::S3(_) | Self::Foreign(_) => None,
        }
    }

    /// The settings of the token service, if the request calls it.
    pub(in crate::frontend) fn token_service(self, head: &Parts) -> Option<&'a S3Settings> {
        match self {
            Self::S3(settings) => settings.is_token_call(head).then_some(settings),
            Self::Azure(_) | Self::Foreign(_) => None,
        }
    }

    /// Frames an answer as the request demands: changes the head, and returns the encoder of the
    /// body; `None` when the body is not framed.
    pub(in crate::frontend) fn frame(
        self,
        request: &Parts,
        answer: &mut HeaderMap,
    ) -> Option<Encoder> {
        match self {
            Self::Azure(_) if !request.headers.contains_key(&structured::BODY_HEADER) => None,
            Self::Azure(_) if request.method == http::Method::GET => structured::announce(answer),
            Self::Azure(_) => {
                structured::confirm(answer);
                None
            }
            Self::S3(_) | Self::Foreign(_) => None,
        }
    }

    /// The id that a client gave its request.
    pub(in crate::frontend) fn client_request_id(self, head: &HeaderMap) -> Option<&str> {
        text(head, self.headers().client_request_id)
    }

    /// The request's id, as an answer has it.
    pub(in crate::frontend) fn request_id(self, answer: &HeaderMap) -> Option<&str> {
        text(answer, self.headers().request_id)
    }

    /// The error code of an answer.
    pub(in crate::frontend) fn error_code(self, answer: &HeaderMap) -> Option<&str> {
        text(answer, self.headers().error_code)
    }

    fn headers(self) -> HeaderNames {
        match self {
            Self::Azure(_) => AZURE_HEADERS,
            Self::S3(_) => S3_HEADERS,
            Self::Foreign(foreign) => foreign.headers(),
        }
    }
}

fn host(head: &Parts) -> Option<&str> {
    head.headers.get(HOST).and_then(|host| host.to_str().ok())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
