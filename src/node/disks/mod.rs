//! The disks of a node.
//!
//! `list.rs`: the list of a store's disks, which its coordinator keeps: a start misses a forgotten
//! disk and adds none unasked. `directories.rs`: whether directories are those of one stopped
//! store, told before anything is changed. `store.rs` shows, drains and removes the disks of a
//! running node.

pub mod directories;
mod error;
pub(super) mod list;
mod store;

pub use error::DiskListError;
pub use list::Given;
pub use list::Known;
pub use list::State;
pub use list::read;
pub use store::NodeDisks;
