//! The index of a cluster: each partition is served by one of several processes. A front end asks
//! through [`ClusterIndex`] the process that the map names, [`IndexService`] answers there.
//!
//! - `calls.rs`: the messages; `api-spec/index-calls.md` describes them;
//! - `served.rs`: the partitions that this process serves, once it does;
//! - `service.rs`: answers the calls of other processes;
//! - `host.rs`: asks the process of a partition; `joined.rs`: look-ups of a hot key share calls;
//! - `partitions.rs`: shows and changes the partitions of all processes; `remote_partitions.rs`:
//!   those of another one;
//! - `accounts.rs`: tells which accounts were changed, for the caches of front ends.
//!
//! Invariants (ADR 0057, 0058): a process that serves the index answers only calls of processes
//! whose session it sees in the table of nodes, and reclaim asks all of these about their running
//! requests before it frees anything · a write whose outcome is unknown is sent again only under
//! its number.

mod accounts;
mod calls;
mod host;
mod joined;
mod partitions;
mod remote_partitions;
mod served;
mod service;
#[cfg(test)]
mod tests;

pub use accounts::{AccountChanges, ChangedAccounts, ChangesTo};
pub use host::{ClusterIndex, Peers};
pub use partitions::ClusterPartitions;
pub use served::{IndexClients, KnownWriters, ServedIndex};
pub use service::{INDEX_SERVICE, IndexService};

/// Decodes `bytes` as each message between processes about the index and about running requests.
/// Returns how many decoders accepted them. Never panics.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    calls::decode_any(bytes) + crate::index::inflight::decode_any(bytes)
}
