//! The way of a command to the admin listener of a running node: `args.rs` are the flags that all
//! such commands have, `place.rs` connects, `client.rs` shows the token and sends a request,
//! `query.rs` writes its query.

pub(super) mod args;
pub(super) mod client;
pub(super) mod place;
pub(super) mod query;
