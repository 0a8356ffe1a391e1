//! Who may do what.
//!
//! 1. `admit.rs` lets a request in: account, signature, stored policy, parse, permission.
//! 2. `needs.rs` is the table of what each operation needs.
//! 3. `anonymous.rs` decides about whoever does not say who they are, by the container's public
//!    access.
//! 4. `replace.rs`, `scope.rs` and `overrides.rs` are what a signature changes about a request and
//!    its answer.
//!
//! A token grants nothing by itself: its principal has a role by the account's role assignments, or
//! by the claims of an issuer that the configuration binds to the account.
//!
//! Invariant: nothing is parsed before it is known who sends it, nothing is carried out before it
//! is known that they may. A stored policy is read from its partition for each request: revoking it
//! works at once.

pub(crate) mod admit;
mod anonymous;
pub(crate) mod hosts;
mod needs;
pub(crate) mod overrides;
pub(crate) mod replace;
mod scope;
