//! The manager decides when the partition map changes, and has the index server change it.
//!
//! 1. `balancer.rs`: the loop. Every tick it takes a load report from the index server, asks the
//!    policy for changes, and has the server carry them out.
//! 2. `policy.rs`: decides from the load of all partitions which ones to split, stripe, move or
//!    merge. It has no clock and no I/O, so the simulation can replay days of load.
//! 3. `audit_line.rs`: the line of the audit log for each change.
//!
//! In a cluster, `hosts.rs` says which process serves which partition; one process does that for
//! all. The others decide about their own partitions.
//!
//! Invariants: a split key is a routing key, so a blob is never divided · one hot blob never causes
//! a split, because no split helps it · the number of changes in a tick is bounded, and so is the
//! share of the load that moves.
//!
//! Not here: the measurement of a partition's load (`index/load/`), and the changes themselves
//! (`index/server/`). Without a manager the server works, and its map changes only by commands.

mod audit_line;
mod balancer;
mod hosts;
mod policy;
#[cfg(test)]
mod tests;

pub use balancer::{Manager, Setup};
pub use hosts::{HostManager, MovesPartitions};
pub use policy::{Policy, PolicyConfig, TICK};
