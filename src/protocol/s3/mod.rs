//! S3: bytes in, one [`Operation`](crate::protocol::model::Operation) out; a reply in, bytes out.
//! In construction: no listener speaks it yet.
//!
//! 1. `address.rs` finds account, bucket and key in host and path.
//! 2. `routes.rs` has the one table of operations.
//! 3. `errors.rs`: the code, status and text of each refusal.
//! 4. `chunked.rs`: bodies in `aws-chunked` form.

pub mod address;
pub mod chunked;
pub mod errors;
pub mod routes;
