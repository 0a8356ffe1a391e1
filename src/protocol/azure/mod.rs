//! The Azure dialect: Blob REST heads and bodies to
//! [`Operation`](crate::protocol::model::Operation)s and back.
//!
//! 1. `address.rs` finds account, container and blob, path-style or host-style; decodes once.
//!    `naming.rs` has the rules of names that a request makes.
//! 2. `context.rs` reads what every answer echoes: `x-ms-version`, `x-ms-client-request-id`.
//! 3. `parse.rs` routes to `containers.rs`, `blobs.rs`, `copy.rs`, `lists.rs`, `leases.rs`,
//!    `snapshots.rs`, `tiers.rs`; `deletions.rs` has the versions of deleted containers;
//!    `unserved.rs` refuses what would change meaning if ignored;
//!    `limits.rs`, `conditions.rs`, `encryption.rs`, `range.rs`, `headers.rs`, `upload.rs`,
//!    `copy_headers.rs` read the pieces of a `request.rs`, with the readers of `protocol/wire/`.
//! 4. `documents.rs` names the operations with a document in their body. `acl.rs` reads and writes
//!    access policies, `delegation.rs` user delegation keys, `service.rs` service properties,
//!    `tags.rs` tags, `batch.rs` batches and their answers; `xml.rs` reads the body of Put Block
//!    List.
//! 5. `render.rs`, `listing.rs`, `words.rs` write heads and XML bodies, `listing_columns.rs` pages
//!    of blobs in columns; `echo.rs` has the parts of the request that they repeat; `errors.rs` is
//!    the table of codes, statuses and texts.
//! 6. `answers.rs` reads the answers of the service, for commands that are its client.
//! 7. `query.rs` reads the body of Query Blob Contents, `query_records.rs` writes its answer.
//! 8. `structured.rs` decodes and encodes bodies that carry their checksums.
//!
//! Invariants: no input makes this module panic; a header that would change durability, retention,
//! encryption or conditions is never ignored; every error carries a documented code.
//!
//! It deliberately does no I/O, reads no clock, checks no signature and knows no container's
//! existence.

mod acl;
mod address;
pub mod answers;
mod appends;
mod batch;
mod blobs;
pub mod block_id;
mod conditions;
mod containers;
mod context;
mod copy;
mod copy_headers;
mod delegation;
mod deletions;
mod documents;
mod echo;
mod encryption;
pub mod errors;
mod headers;
mod immutability;
mod leases;
mod limits;
mod listing;
#[cfg(feature = "query")]
mod listing_columns;
mod lists;
mod names;
mod naming;
mod pages;
mod parse;
mod query;
pub mod query_records;
mod range;
mod render;
mod request;
mod service;
mod snapshots;
pub mod structured;
mod tags;
mod tiers;
mod unserved;
mod upload;
mod web;
mod words;
pub mod xml;

pub use address::{Addressing, address};
pub use batch::{write_batch, write_refused_batch};
pub use context::{Context, ServiceVersion};
pub use copy::{read_blob_headers, source_headers};
pub use delegation::read_key as delegation_key;
pub use echo::RequestEcho;
pub use encryption::{check_key_is_safe, source_key_is_unsafe};
pub use headers::METADATA_PREFIX;
pub use naming::{explain_missing, may_be_made};
pub use parse::parse;
pub use render::{render, render_error, render_error_without_text};
pub use web::{
    WebAddress, WebConditions, web_address, web_answer, web_documents, web_error, web_request,
};

#[cfg(test)]
mod tests;
