//! Requests to the admin listener of a running node: `args.rs` has the flags of all such commands,
//! `place.rs` connects, `client.rs` sends a request with the token, `query.rs` writes its path and
//! query.

pub(super) mod args;
pub(super) mod client;
pub(super) mod place;
pub(super) mod query;
