//! Who may do what.
//!
//! 1. `admit.rs` lets a request in: room for it, then identification, parse and permission in the
//!    order of its dialect (`dialect/admit.rs`). The outcome is in `admitted.rs`.
//! 2. `caller.rs` is who sends it; the dialect identifies them. `hosts.rs` checks the host that the
//!    request names.
//! 3. `actions.rs` is the action that each operation is; `auth` knows what permits an action.
//!    `permit.rs` asks it.
//! 4. `anonymous.rs` decides about whoever does not say who they are, by the container's public
//!    access.
//! 5. `replace.rs`, `scope.rs` and `overrides.rs` are what a signature changes about a request and
//!    its answer.
//!
//! A token grants nothing by itself: its principal has a role by the account's role assignments, or
//! by the claims of an issuer that the configuration binds to the account.
//!
//! Invariant: nothing is parsed before it is known who sends it, nothing is carried out before it
//! is known that they may. A stored policy is read from its partition for each request: revoking it
//! works at once.

pub(crate) mod actions;
pub(crate) mod admit;
pub(crate) mod admitted;
pub(crate) mod anonymous;
pub(crate) mod caller;
pub(crate) mod hosts;
pub(crate) mod overrides;
pub(crate) mod permit;
pub(crate) mod replace;
mod scope;
