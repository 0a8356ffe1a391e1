//! The durable state of a node: the disks with their extents, and the coordinator.
//!
//! `durable.rs`: the type; `disk.rs` locks a data directory; `open.rs` opens all of them to be
//! served, verified or copied; `start.rs` recovers the disks and opens the coordinator, also in the
//! simulation; `owner.rs`: whether the store belongs to a node alone or to a node of a cluster;
//! `overlay_disk.rs`: a disk that keeps writes in memory.

mod disk;
mod durable;
mod open;
mod overlay_disk;
mod owner;
mod start;

pub use disk::open_disk;
pub use durable::Storage;
pub(in crate::node) use durable::open_failed;
pub use open::coordinator_copy;
pub use owner::Owner;
pub(in crate::node) use owner::{Founding, finishing, found, founded, founding, unfound};
pub(in crate::node) use owner::{node_of, set_node};
pub use start::CoordinatorPlace;
pub use start::Start;
