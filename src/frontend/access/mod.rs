//! Access control.
//!
//! 1. `admit.rs` admits a request: a place among the requests, then identification, parse and
//!    permission in the order of its dialect (`dialect/admit.rs`). The outcome is in `admitted.rs`.
//! 2. `caller.rs` is the sender, whom the dialect identifies. `hosts.rs` checks the host name of
//!    the request.
//! 3. `actions.rs` maps each operation to an action, `besides.rs` to the further actions for which
//!    a sender with a role needs permission. `auth` knows what permits an action. `permit.rs`
//!    checks all of them.
//! 4. `anonymous.rs` decides about anonymous callers, by the container's public access.
//!    `user_caller.rs` decides about users of the account, by their roles and by their ownership,
//!    which `users.rs` looks up.
//! 5. `keys.rs` refuses customer-provided keys over plain connections.
//! 6. `replace.rs`, `scope.rs` and `overrides.rs` apply the restrictions of a signature to a
//!    request and its answer.
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
