//! Dialects: bytes in, one [`Operation`] out; [`Reply`] in, bytes out. Pure: no I/O, no clock, no
//! async.
//!
//! 1. `azure/address.rs` finds account, container and blob in the URL, path-style or host-style.
//! 2. (the front end authenticates the raw request with `auth`)
//! 3. `azure/parse.rs` turns head and query into an [`Operation`], complete or with a document
//!    still to be read (`operation::Parsed`); `azure/documents.rs` names what reads it.
//! 4. `azure/render.rs` turns a [`Reply`] or an [`Error`] into a response head and body.
//!
//! One error table (`error.rs`, `api-spec/errors.json`) serves all dialects.

pub mod azure;
pub mod checksum;
pub mod copy;
pub mod error;
pub mod host;
pub mod operation;
pub mod reply;

pub use error::{Cause, Error, ErrorCode};
pub use host::{HostError, KnownHosts};
pub use operation::{OPERATION_NAMES, Operation, Precondition};
pub use reply::Reply;
