//! The keys under which secrets of rows are sealed.
//!
//! `master_key.rs`: the master key file, made at the first start and compared with the store at
//! later ones; `reseal.rs`: secrets are sealed under the active key; `erase.rs`: files of releases
//! that kept secrets plain are rewritten; `store.rs` shows and rotates the keys of a running node.
//!
//! Invariant: no key leaves the master key file and the memory of the node.

mod erase;
pub mod master_key;
pub(super) mod reseal;
mod store;

pub use erase::Erase;
pub use master_key::MasterKeyError;
pub use store::NodeKeys;
pub use store::view;
