//! The coordinator: a small, consistent store in the style of etcd. It holds the descriptors of
//! partitions, counters that issue ids, and sessions of nodes. It holds no state of objects and is
//! on no data path.
//!
//! The main path, a transaction:
//! 1. `api.rs`: the trait and its guarantees;
//! 2. `embedded.rs`, the store of a single node: one writer; concurrent transactions share a
//!    durable commit (`embedded/file.rs`);
//! 3. `transaction.rs`: the meaning of conditions and changes, the same for all stores;
//! 4. `history.rs`: delivers changes to watches; `sessions.rs`: sessions, whose keys are removed
//!    when they end.
//!
//! `etcd.rs` is the store of a cluster (ADR 0051).
//!
//! `follow.rs` follows the keys under a prefix. `nodes.rs`: the nodes of a cluster and their lives;
//! `cluster.rs`: what the cluster is; `adoption.rs`: a cluster that is made of the store of a
//! single node; `claim.rs`: the right to be the only one that does something; `guarded.rs`: a
//! coordinator that changes nothing once a claim is lost; `trust.rs`: the authority of the nodes'
//! certificates, and tokens for new nodes.
//!
//! Also here: `simulated.rs`, the store in memory with faults, for simulation; `counter.rs`, ids by
//! compare and set; `conformance.rs`, the suite that all three stores pass.
//!
//! Invariants: a committed transaction is durable and atomic; revisions only grow; a watch delivers
//! every change once and in order, or fails; a key written with a session is removed when the
//! session ends; an id is issued at most once.
//!
//! Not here: elections, locks, time. The embedded store serves one process, etcd any number.

pub mod adoption;
pub mod api;
pub mod claim;
pub mod cluster;
pub mod counter;
pub mod embedded;
pub mod etcd;
pub mod hosts;
pub mod nodes;
pub mod simulated;
pub mod trust;

mod follow;
mod guarded;
mod history;
mod sessions;
mod transaction;

#[cfg(test)]
mod conformance;

pub use api::{
    Compare, Coordinator, Error, Event, Op, Reason, Revision, Session, Snapshot, TxnReply,
    Versioned, Watch,
};
pub use counter::IdAllocator;
pub use embedded::EmbeddedCoordinator;
pub use etcd::{EtcdConfig, EtcdCoordinator, EtcdIdentity, EtcdTls, EtcdUser};
pub use follow::{Follows, follow};
pub use guarded::Guarded;
pub use simulated::{Fault, Faults, SimulatedCoordinator, SimulatedStore};
