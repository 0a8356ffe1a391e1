//! The keys under which secrets in rows are sealed.
//!
//! `master_key.rs`: the master key file, which the first start creates and later starts compare
//! with the store; `reseal.rs` seals secrets under the active key; `erase.rs` rewrites files in
//! which older releases left secrets plain; `store.rs` shows and rotates the keys of a running
//! node.
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
