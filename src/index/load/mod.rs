//! Load of partitions, and when to change the map for it.
//!
//! 1. `meter.rs`: what a partition notes of each request: a count, and the keys of some, waiting ones too.
//! 2. `policy.rs`: from the loads of all partitions at an instant to the splits, moves and merges to make: a pure function
//!    of what it is told, so that days of load are replayed in a test.
//!
//! Invariants: the hot path pays one atomic addition for most requests · a split key is a routing key, so a blob is never
//! cut · one hot blob is never split for, since no split helps it · at most so many changes in a tick.
//!
//! Not here: carrying changes out (`fleet/`).

mod meter;
mod policy;

pub use meter::Meter;
pub use policy::{PartitionLoad, Plan, Policy, PolicyConfig};
