//! What more than one dialect reads and writes, free of any of them.
//!
//! - `percent.rs`, `query.rs`: URLs.
//! - `headers.rs`, `conditions.rs`, `range.rs`: headers of requests; `head.rs`: those of answers.
//! - `xml.rs` reads small documents as trees, `escape.rs` writes XML text.
//! - `cors.rs` holds cross-origin requests against an account's rules.
//!
//! No name of a vendor's header stands here.

pub(super) mod conditions;
pub mod container_cors;
pub mod cors;
pub(super) mod escape;
pub(super) mod head;
pub(super) mod headers;
pub(super) mod percent;
pub(super) mod query;
pub(super) mod range;
pub(super) mod xml;
