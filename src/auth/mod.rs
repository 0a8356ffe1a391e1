//! Authentication and authorization: who sent a request, and what the sender may do. Pure: no I/O,
//! no clock.
//!
//! 1. `keys.rs`: the keys of an account, ready to sign.
//! 2. `canonical.rs`, `shared_key.rs`: Shared Key and Shared Key Lite: strings-to-sign from the raw
//!    head, and the date window.
//! 3. `sas/`: shared access signatures, verified and minted.
//! 4. `bearer/`: tokens of OpenID Connect issuers.
//! 5. `sas_permissions.rs`, `grant.rs`: what a signature or a token grants, and what an operation
//!    needs. `delegator.rs`: the entitlements that user delegation keys depend on.
//! 6. `key_ring/`: the master keys, and the secrets that are sealed under them.
//!
//! The front end maps [`Error`] to codes (`frontend/errors.rs`) and keeps the table of what each
//! operation needs (`frontend/access/needs.rs`).
//!
//! It knows no operation and looks nothing up: policies, keys and public access are parameters.

#![deny(clippy::indexing_slicing)]

mod bearer;
mod canonical;
mod delegator;
mod error;
mod grant;
mod key_ring;
mod keys;
mod sas;
mod sas_permissions;
mod shared_key;

pub(crate) use bearer::{ClaimedKey, claimed_key};
pub use bearer::{Issuer, KeySet, KeySetError, Principal, RoleMap, verify_token};
pub use canonical::SignedRequest;
pub use delegator::{Entitlement, Scope, TrustedIssuer};
pub use error::Error;
pub use grant::{Authority, Exposure, Grant, Level, Need, Overrides, Permit, Reach};
pub use key_ring::{
    KeyRing, KeyRingError, KeyState, MasterKey, MasterKeyId, SecretContext, UnsealError,
    sealed_under,
};
pub use keys::{AccountKeys, DEVELOPMENT_KEY, KeyError};
pub use sas::{
    Circumstances, DELEGATION_MAX, DelegationKey, DelegationSecret, Delegator, MINT_VERSION,
    Policy, SasRequest, Signature, Signers, Target, Terms, is_bound_to_user, mint_account,
    mint_delegation, mint_service,
};
pub use sas_permissions::SasPermissions;
pub use shared_key::{DATE_WINDOW, authenticate};

#[cfg(test)]
mod tests;
