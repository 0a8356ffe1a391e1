//! Bearer tokens of configured OpenID Connect issuers: JSON web tokens, signed with RS256 or ES256.
//!
//! 1. `keys.rs` reads an issuer's key set.
//! 2. `token.rs` verifies a token: issuer, signature, window, audience, then who it is and in which
//!    role.
//!
//! Invariants: only the two algorithms named here are believed, whatever a token says; a token
//! without expiry is none; nothing of a token is used before its signature is verified, but to find
//! the key.

mod keys;
mod token;

pub use keys::{KeySet, KeySetError};
pub(crate) use token::{ClaimedKey, claimed_key};
pub use token::{Issuer, Principal, RoleMap, verify_token};

#[cfg(test)]
mod tests;
