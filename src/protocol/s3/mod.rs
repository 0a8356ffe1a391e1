//! S3: bytes in, one [`Operation`](crate::protocol::model::Operation) out; a reply in, bytes out.
//!
//! 1. `address.rs` finds account, bucket and key in host and path.
//! 2. `routes.rs` has the one table of operations. `parse.rs` finds the operation of a request
//!    (`request.rs`) and calls its parser: `objects.rs`, `copies.rs` (with `copy_source.rs`),
//!    `deletions.rs`, `attributes.rs`, `restore.rs`, `uploads.rs` (with `completion.rs`),
//!    `buckets.rs`, `lists.rs`, `tagging.rs`, `acl.rs`, `cors.rs`, `settings.rs`, `versioning.rs`.
//!    `unserved.rs` refuses headers and parameters that are not served.
//! 3. Parsers share `arguments.rs` (parameters of lists), `conditions.rs`, `checksums.rs`,
//!    `upload_checksums.rs`, `encryption.rs` (SSE-C), `upload.rs` (bodies), `documents.rs` (XML),
//!    `naming.rs` (names of buckets), `versions.rs` (ids of versions), `owners.rs`, `markers.rs`
//!    and `beside.rs`.
//! 4. `render.rs` turns a reply or a refusal into a response head and body. `echo.rs` has the parts
//!    of a request that its answer repeats, `asked.rs` other parts that determine the answer,
//!    `overrides.rs` the headers that a signed request replaces in it.
//! 5. `errors.rs`: the code, status and text of each refusal.
//! 6. `chunked.rs`: bodies in `aws-chunked` form. `form/`: forms of browsers; `post.rs` parses them
//!    into an operation.
//! 7. `sts.rs`: the token service, which issues temporary keys.

mod acl;
pub mod address;
mod arguments;
mod asked;
mod attributes;
mod beside;
mod buckets;
mod checksums;
pub mod chunked;
pub mod completion;
mod conditions;
mod copies;
mod copy_source;
mod cors;
pub mod deletions;
mod documents;
mod echo;
mod encryption;
pub mod errors;
pub mod form;
mod lists;
mod locks;
mod markers;
mod naming;
mod objects;
mod overrides;
mod owners;
mod parse;
mod post;
mod render;
mod request;
pub mod restore;
pub mod routes;
mod settings;
pub mod sts;
mod tagging;
mod unserved;
mod untrusted;
mod upload;
mod upload_checksums;
mod uploads;
mod versioning;
mod versions;

pub use checksums::of_trailers;
pub use echo::S3Echo;
pub use overrides::{ResponseOverrides, overrides};
pub use parse::{operation, parse};
pub use render::{render, render_refusal, render_refusal_without_text};
pub use untrusted::decode_untrusted;
pub use upload::content_len;
