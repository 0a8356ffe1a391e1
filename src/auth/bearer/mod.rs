//! Bearer tokens of configured OpenID Connect issuers: JSON web tokens, signed with RS256 or ES256.
//!
//! 1. `keys.rs` reads an issuer's key set.
//! 2. `token.rs` verifies a token: issuer, signature, time window, audience; then its principal and
//!    role.
//!
//! Invariants: only these two algorithms are accepted. A token without expiry is refused. Before
//! its signature is verified, a token is used for nothing but to find the key.

mod keys;
mod token;

pub use keys::{KeySet, KeySetError};
pub(crate) use token::{ClaimedKey, claimed_key};
pub use token::{Issuer, Principal, RoleMap, verify_token};

#[cfg(test)]
mod tests;
