//! The durable half of a node.
//!
//! `parts.rs`: what there is, disks with their extents and the coordinator; `disk.rs`: a data
//! directory is locked; `open.rs`: all of them are opened, to be served, verified or copied;
//! `start.rs`: the disks are recovered and the coordinator is opened, as in the simulation too;
//! `overlay_disk.rs`: a disk that is only read.

mod disk;
mod open;
mod overlay_disk;
mod parts;
mod start;

pub use disk::open_disk;
pub use open::coordinator_copy;
pub use parts::Storage;
pub(in crate::node) use parts::open_failed;
pub use start::CoordinatorPlace;
pub use start::Start;
