//! Shared access signatures: of an account, of a container or blob, by an account key or a user
//! delegation key.
//!
//! 1. `fields.rs` reads the parameters out of a query and writes them.
//! 2. `layout.rs` is the table of strings-to-sign by form and version.
//! 3. `verify.rs` verifies the signature ([`Signature::verify`]). Then, with the stored policy that
//!    the front end looked up, it checks that the signature is valid for the request
//!    ([`Signature::settle`]).
//! 4. `network.rs` reads addresses and protocols; `delegation.rs` derives user delegation keys.
//! 5. `mint.rs` makes signatures.
//!
//! Invariants: no field of a signature is used before the signature is verified. The resource that
//! it is verified against comes from the URL, never from its parameters. Comparisons take constant
//! time.

mod delegation;
mod fields;
mod layout;
mod mint;
mod network;
mod verify;

pub use delegation::{DELEGATION_MAX, DelegationKey, DelegationSecret};
pub use mint::{MINT_VERSION, Target, Terms, mint_account, mint_delegation, mint_service};
pub use verify::{
    Circumstances, Delegator, Policy, SasRequest, Signature, Signers, is_bound_to_user,
};

#[cfg(test)]
mod tests;
