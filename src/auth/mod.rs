//! Who sent a request: Shared Key and Shared Key Lite signatures. Pure: no I/O, no clock.
//!
//! 1. `keys.rs` holds an account's keys, ready to sign.
//! 2. `canonical.rs` builds the strings-to-sign from the raw head.
//! 3. `shared_key.rs` reads `Authorization`, checks the date window and compares signatures in constant time.
//!
//! The front end maps [`Error`] to the dialect: `Missing` 401 `NoAuthenticationInformation`; `SharedAccessSignature`
//! 501 `NotImplemented`; `Malformed` and `UnknownScheme` 400 `InvalidAuthenticationInfo`; `WrongSignature` and
//! `ClockSkew` 403 `AuthenticationFailed`, as is an account that is not served. Details become the element
//! `AuthenticationErrorDetail`.
//!
//! It deliberately knows no operation and grants no permission: whoever holds a key may do everything in the account.

mod canonical;
mod error;
mod keys;
mod shared_key;

pub use error::Error;
pub use keys::{AccountKeys, KeyError};
pub use shared_key::{DATE_WINDOW, SignedRequest, authenticate};

#[cfg(test)]
mod tests;
