//! The client of the index: finds the partition that owns a key and asks it. The front end, reclaim
//! and the admin listener use the same one.
//!
//! 1. `router.rs` sends a request to the owner. If the map was stale, it refreshes the map and
//!    sends it again (`stale.rs`). `numbers.rs`: in a cluster a write whose outcome is unknown is
//!    sent again under its number. `settle.rs`: one whose outcome stays unknown is settled.
//! 2. `follow.rs` keeps the partition map up to date from the coordinator's changes.
//! 3. `fixed.rs` sends requests to the owners of a given map, without retries; reclaim uses it.
//! 4. `stripes.rs` merges the pages of the stripes of one range into one page.
//! 5. `cluster_host.rs`: the answers of a host that another process may take over from.
//! 6. `containers.rs`: writes into containers, and deletion of empty containers.
//!
//! Invariant: a stale map can delay a request but never make its answer wrong (I15). An owner
//! refuses a request that names another epoch than its own.
//!
//! Not here: the answers of partitions (`server/`, `objects/`), and changes of the map (`server/`).

mod cluster_host;
mod containers;
mod fixed;
mod follow;
mod numbers;
mod router;
mod settle;
mod stale;
mod stripes;
#[cfg(test)]
pub(crate) mod testing;

pub use cluster_host::ClusterHost;
pub use containers::{Containers, Entered, FoundContainer};
pub use fixed::FixedMap;
pub use numbers::WriteNumbers;
pub use router::Router;
