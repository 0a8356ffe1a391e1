//! The disks of a node.
//!
//! `list.rs`: the list of a store's disks, which the coordinator keeps. A start reports a missing
//! disk, and adds a disk only on request. `directories.rs`: checks that directories belong to one
//! stopped store, before anything is changed. `store.rs` shows, drains and removes the disks of a
//! running node.

pub mod directories;
mod error;
pub(super) mod list;
mod store;

pub use error::DiskListError;
pub use list::DiskRecord;
pub use list::Given;
pub use list::State;
pub use list::read;
pub use store::NodeDisks;
