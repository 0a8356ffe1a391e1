//! One disk: its journal, its catalog, its extents, and the operations on them.
//!
//! 1. `open.rs`: opens the disks of a node with the parameters of `opening.rs`; `format.rs`: the
//!    store's id and the disk's number; `recover.rs`: replays the journal and finds the extents;
//!    `found_open.rs`: seals or closes those that were open; `open_error.rs`: why a disk cannot be
//!    opened.
//! 2. `store.rs`: the state of an open disk, which the other files use, and the creation of
//!    extents; `creations.rs`: creations that were not acknowledged; `space.rs`: free space.
//! 3. `append.rs`: appends to the journal or the file; `checkpoint.rs`: moves bytes from the
//!    journal to the files; `seal.rs`: fences and seals an extent; `extend.rs`: completes a copy
//!    from another node's copy.
//! 4. `read.rs`: reads and verifies frames; `files.rs` and `open_files.rs`: a bounded number of
//!    open files.
//! 5. `free.rs`: dead ranges, holes, removal; `compact.rs`: copies live frames to a new file;
//!    `copy.rs`: copies them to another disk.
//! 6. `scrub.rs`: finds damage while the node runs; `mend.rs`: mends a frame with that of another
//!    copy; `check.rs`: finds damage while the node is stopped.
//! 7. `catalog.rs`, `catalog_sim.rs`: the list of sealed extents, so that a start does not read
//!    each file.
//! 8. `invariants.rs`: assertions that stop the disk.
//!
//! Invariants: after a failed write or sync the disk takes no writes until a restart · the catalog
//! is a cache, and the files are authoritative · an extent changes only under its change lock.
//!
//! Not here: which disk holds an extent, and work on several disks (`node.rs` and the files beside
//! it).

pub(super) mod append;
pub(super) mod catalog;
pub(super) mod catalog_sim;
pub(super) mod check;
mod checkpoint;
pub(super) mod compact;
mod copy;
mod creations;
mod extend;
mod files;
pub(super) mod format;
mod found_open;
mod free;
mod invariants;
pub(super) mod mend;
pub(super) mod open;
pub(super) mod open_error;
mod open_files;
pub(super) mod opening;
mod read;
pub(super) mod recover;
pub(super) mod scrub;
mod seal;
mod space;
pub(super) mod store;
