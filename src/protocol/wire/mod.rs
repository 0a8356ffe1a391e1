//! Code that dialects share.
//!
//! - `percent.rs`, `query.rs`: URLs.
//! - `headers.rs`, `conditions.rs`, `range.rs`, `guid.rs`: headers of requests; `head.rs`: those of
//!   answers.
//! - `xml.rs` reads small documents as trees, `escape.rs` writes XML text.
//! - `cors.rs` compares cross-origin requests with the rules of an account, `container_cors.rs`
//!   with those of a container.
//!
//! No header of a dialect is named here.

pub(super) mod conditions;
pub mod container_cors;
pub mod cors;
pub(super) mod escape;
mod guid;
pub(super) mod head;
pub(super) mod headers;
pub(super) mod percent;
pub(super) mod query;
pub(super) mod range;
pub(super) mod xml;
