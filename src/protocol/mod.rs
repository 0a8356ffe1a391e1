//! Dialects: bytes in, one [`model::Operation`] out; [`model::Reply`] in, bytes out. Pure: no I/O,
//! no clock, no async.
//!
//! `model/` has what all dialects share in meaning: addresses, operations, replies, refusals.
//! `wire/` has the readers and writers that more than one of them needs. A dialect has a folder:
//!
//! 1. `azure/address.rs` finds account, container and blob in the URL, path-style or host-style.
//! 2. (the front end authenticates the raw request with `auth`)
//! 3. `azure/parse.rs` turns head and query into an operation, complete or with a document
//!    still to be read (`model/operation/parsed.rs`); `azure/documents.rs` names its decoder.
//! 4. `azure/render.rs` turns a reply or a refusal into a response head and body.
//!
//! `s3/` has the same order; its `routes.rs` is the table of operations.
//!
//! `azure/errors.rs` and `s3/errors.rs` have the dialect's code, status and text for each reason of
//! a refusal. `api-spec/errors.json` has a column for each dialect.

pub mod azure;
pub mod host;
pub mod model;
pub mod s3;
pub mod wire;

pub use host::{HostError, KnownHosts};
