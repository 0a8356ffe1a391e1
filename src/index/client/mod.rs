//! The client of the index: finds the partition that owns a key and asks it. The front end, reclaim
//! and the admin listener use the same one.
//!
//! 1. `router.rs` asks the owner; a request that meets a stale map follows the map and asks again.
//! 2. `follow.rs` keeps the partition map up to date from the coordinator's changes.
//! 3. `fixed.rs` asks the owners of a map that the caller has read, once; reclaim does.
//! 4. `stripes.rs` merges the pages of the stripes of one range into one page.
//!
//! Invariant: a stale map can delay a request but never makes its answer wrong (I15): an owner
//! refuses a request that names another epoch than its own.
//!
//! Not here: what partitions answer (`server/`, `objects/`), and who changes the map (`server/`).

mod fixed;
mod follow;
mod router;
mod stripes;
#[cfg(test)]
pub(crate) mod testing;

pub use fixed::FixedMap;
pub use router::Router;
