//! The manager: decides when the partition map changes, and has the index server change it.
//!
//! 1. `balancer.rs`: the loop. Every tick it takes a load report of the index server, asks the
//!    policy, and has the server carry out what is planned.
//! 2. `policy.rs`: from the load of all partitions to the splits, stripes, moves and merges to
//!    make. It is a pure function of what it is told, so that the simulation replays days of load.
//! 3. `audit_line.rs`: the line of the audit log for each change.
//!
//! Invariants: a split key is a routing key, so a blob is never cut · one hot blob is never split
//! for, since no split helps it · at most so many changes in a tick, and at most so much of the
//! load moved.
//!
//! Not here: what a partition notes of its load (`index/load/`), and how the map is changed
//! (`index/server/`). The server works without a manager: then nobody changes its map by itself.

mod audit_line;
mod balancer;
mod policy;
#[cfg(test)]
mod tests;

pub use balancer::{Manager, Setup};
pub use policy::{Policy, PolicyConfig, TICK};
