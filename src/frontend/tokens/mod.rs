//! The issuers whose bearer tokens are trusted, and their keys.
//!
//! 1. `place.rs`: the place of an issuer's keys: a file, a URL, or the URL in its configuration
//!    document.
//! 2. `issuers.rs`: all issuers. A token that names an unknown key causes a fetch.
//! 3. `keyring.rs`: the keys of one issuer, their age, when they may be fetched again, and which
//!    requests wait for that.
//! 4. `fetch.rs` fetches them. `metrics.rs` counts the fetches, `ages.rs` shows the age of the
//!    keys.
//!
//! Invariants: one task at a time fetches the keys of an issuer, and not more often than every
//! [`URL_AGE_MIN`], whatever keys tokens name. Keys stay in use until newer ones were fetched.
//! Tokens of an issuer whose keys were never fetched are refused; the node serves other requests.
//! Redirects are not followed; only a configuration document may name another server.
//!
//! Not here: the contents of a token (`auth::bearer`).

#![deny(clippy::indexing_slicing)]

mod ages;
mod fetch;
mod issuers;
mod keyring;
mod metrics;
mod place;

pub use issuers::Tokens;
pub use keyring::URL_AGE_MIN;
pub use place::{KeysAt, KeysUrl, KeysUrlError, TokenSource};

#[cfg(test)]
mod tests;
