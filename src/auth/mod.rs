//! Authentication and authorization: who sent a request, and what the sender may do. Pure: no I/O,
//! no clock.
//!
//! 1. `keys.rs`: the keys of an account, ready to sign.
//! 2. `canonical.rs`, `shared_key.rs`: Shared Key and Shared Key Lite: strings-to-sign from the raw
//!    head, and the date window.
//! 3. `sas/`: shared access signatures, verified and minted.
//! 4. `bearer/`: tokens of OpenID Connect issuers.
//! 5. `action.rs`: actions, independent of dialects. `needs.rs`: the signatures, roles and public
//!    access that permit it. `sas_permissions.rs`, `grant.rs`: the permissions of a signature or a
//!    token. `delegator.rs`: the entitlements that user delegation keys depend on.
//! 6. `s3/`: signatures of S3 requests, versions 4 and 2.
//!    `session.rs`: temporary keys, which are derived from an account's delegation secret.
//! 7. `key_ring/`: the master keys, and the secrets that are sealed under them.
//!
//! The front end maps [`Error`] to codes (`frontend/errors.rs`) and operations to actions
//! (`frontend/access/actions.rs`).
//!
//! It knows no operation and looks nothing up: policies, keys and public access are parameters.

#![deny(clippy::indexing_slicing)]

mod action;
mod bearer;
mod canonical;
mod delegator;
mod error;
mod grant;
mod key_ring;
mod keys;
mod needs;
mod s3;
mod sas;
mod sas_permissions;
mod session;
mod shared_key;

pub use action::{Action, Exposure};
pub(crate) use bearer::{ClaimedKey, claimed_key};
pub use bearer::{Issuer, KeySet, KeySetError, Principal, RoleMap, verify_token};
pub use bearer::{read_unsigned, unsigned_issuer};
pub use canonical::SignedRequest;
pub use delegator::{Entitlement, Scope, TrustedIssuer};
pub use error::Error;
pub use grant::{Authority, Grant, Overrides, Permit, Reach};
pub use key_ring::{
    KeyRing, KeyRingError, KeyState, MasterKey, MasterKeyId, SecretContext, UnsealError,
    sealed_under,
};
pub use keys::{AccountKeys, DEVELOPMENT_KEY, KeyError};
pub use s3::{
    ChunkVerifier, Claim, Payload, S3Error, S3Secrets, Sha256Stream, SignedForm, SignedS3Request,
    SignedService, Verified, claim,
};
pub use sas::{
    Circumstances, DELEGATION_MAX, DelegationKey, DelegationSecret, Delegator, MINT_VERSION,
    Policy, SasRequest, Signature, Signers, Target, Terms, is_bound_to_user, mint_account,
    mint_delegation, mint_service,
};
pub use sas_permissions::SasPermissions;
pub use session::{Session, SessionError, SessionHolder, SessionKeys, SessionToken, secret_proof};
pub use shared_key::{DATE_WINDOW, authenticate, sign};

#[cfg(test)]
mod tests;
