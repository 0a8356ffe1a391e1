//! Bearer tokens of configured OpenID Connect issuers: JSON web tokens, signed with RS256 or ES256.
//!
//! 1. `keys.rs` reads an issuer's key set.
//! 2. `token.rs` verifies a token: issuer, signature, time window, audience; then its principal and
//!    role.
//!
//! 3. `unsigned.rs` reads the tokens of accounts for development, if the configuration says so.
//!
//! Invariants: only these two algorithms are accepted. A token without expiry is refused. Before
//! its signature is verified, a token is used for nothing but to find the key. Accounts for
//! development are the exception, where the configuration makes it.

mod keys;
mod token;
mod unsigned;

pub use keys::{KeySet, KeySetError};
pub(crate) use token::{ClaimedKey, claimed_key};
pub use token::{Issuer, Principal, RoleMap, verify_token};
pub use unsigned::{read_unsigned, unsigned_issuer};

#[cfg(test)]
mod tests;
