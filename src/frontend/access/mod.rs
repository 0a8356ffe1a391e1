//! Access control.
//!
//! 1. `admit.rs` admits a request: a place among the requests, then identification, parse and
//!    permission in the order of its dialect (`dialect/admit.rs`). The outcome is in `admitted.rs`.
//! 2. `caller.rs` is the sender, whom the dialect identifies. `hosts.rs` checks the host that the
//!    request names.
//! 3. `actions.rs` is the action that each operation is; `auth` knows what permits an action.
//!    `besides.rs` says what parts of an operation demand of a sender with a role. `permit.rs` asks
//!    for all of it.
//! 4. `anonymous.rs` decides about anonymous callers, by the container's public access.
//!    `user_caller.rs` decides about users of the account, by their roles and by what they own,
//!    which `users.rs` finds out.
//! 5. `keys.rs` keeps customer-provided keys off plain connections.
//! 6. `replace.rs`, `scope.rs` and `overrides.rs` are what a signature changes about a request and
//!    its answer.
//!
//! A token grants nothing by itself: its principal has a role by the account's role assignments, or
//! by the claims of an issuer that the configuration binds to the account.
//!
//! Invariants: a request is parsed only after its sender is identified, and carried out only after
//! its sender is permitted to do it. A stored policy is read from its partition for each request,
//! so that revoking it takes effect immediately.

pub(crate) mod actions;
pub(crate) mod admit;
pub(crate) mod admitted;
pub(crate) mod anonymous;
pub(crate) mod besides;
pub(crate) mod caller;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod overrides;
pub(crate) mod permit;
pub(crate) mod replace;
mod scope;
mod sources;
pub(crate) mod user_caller;
pub(crate) mod users;
