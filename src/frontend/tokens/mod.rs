//! The issuers whose bearer tokens are believed, and their keys.
//!
//! 1. `place.rs`: where an issuer's keys stand: a file, a URL, or what its configuration document
//!    says.
//! 2. `issuers.rs`: all issuers; a token that names a key not known has the keys asked for again.
//! 3. `keyring.rs`: the keys of one issuer: how old they are, when they may be had again, who waits
//!    for that.
//! 4. `fetch.rs` asks for them; `metrics.rs` counts that, `ages.rs` says how old they are.
//!
//! Invariants: an issuer is asked by one task at a time and not more often than every
//! [`URL_AGE_MIN`], whatever tokens claim; keys stay in use until newer ones are had; an issuer
//! whose keys were never had has none of its tokens believed, and the node serves all the same; no
//! answer leads to another server, but a configuration document to the key set.
//!
//! Not here: what a token says (`auth::bearer`).

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
