//! Load of partitions, and when to change the map for it.
//!
//! 1. `meter.rs`: what a partition notes: requests by `class.rs`, the keys of some of them (waiting
//!    ones too), log bytes, waits, refusals, and by `cpu.rs` the processor time of its work.
//! 2. `rates.rs`: that by the second, a tick at a time.
//! 3. `policy.rs`: from the loads of all partitions at an instant to the splits, stripes, moves and
//!    merges to make: a pure function of what it is told, so that days of load are replayed in a
//!    test.
//!
//! Invariants: the hot path pays one atomic addition for most requests · a split key is a routing
//! key, so a blob is never cut · one hot blob is never split for, since no split helps it · at most
//! so many changes in a tick, and at most so much of the load moved.
//!
//! Not here: looking at the meters every tick, and carrying changes out (`server/`).

mod class;
mod cpu;
mod meter;
mod policy;
mod rates;

pub use class::Class;
pub use meter::Meter;
pub use policy::{PartitionLoad, Plan, Policy, PolicyConfig, TICK};
pub use rates::{Counts, Load};
