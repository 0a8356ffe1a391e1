//! One disk: its journal, its catalog and its extents, and all that is done to them.
//!
//! 1. `open.rs`: the disks of a node are opened, with what `opening.rs` says; `format.rs`: which
//!    store and which of its disks one is; `recover.rs`: what a start makes of the journal and of
//!    the extents that were open; `open_error.rs`: why not.
//! 2. `store.rs`: the disk at work, which all others share, and new extents on it; `half_made.rs`:
//!    those whose creation nobody was told of; `space.rs`: whether there is room.
//! 3. `append.rs`: journal or file; `checkpoint.rs`: what the journal holds moves to the files;
//!    `seal.rs`: fences and ends an extent.
//! 4. `read.rs`: frames, each verified; `files.rs` and `open_files.rs`: so many files stay open.
//! 5. `free.rs`: dead ranges, holes, removal; `compact.rs`: a file without what is dead;
//!    `copy.rs`: the same on another disk.
//! 6. `scrub.rs`: damage is looked for while the node runs; `check.rs`: while it is stopped.
//! 7. `catalog.rs`, `catalog_sim.rs`: what spares a start a look at each sealed extent.
//! 8. `invariants.rs`: assertions that stop the disk.
//!
//! Invariants: a failed write or sync ends all writes to the disk until a restart · the catalog is
//! never believed against a file · an extent changes only in its turn.
//!
//! Not here: which disk an extent is on, and what concerns several disks (`node.rs` and what is
//! beside it).

mod append;
pub(super) mod catalog;
pub(super) mod catalog_sim;
pub(super) mod check;
mod checkpoint;
pub(super) mod compact;
mod copy;
mod files;
pub(super) mod format;
mod free;
mod half_made;
mod invariants;
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
