//! The coordinator: a small, consistent store of descriptors, shaped like etcd. Holds which
//! partitions exist and where their logs begin, counters that issue ids, and node sessions; never
//! per-object state, on no data path.
//!
//! The main path, a transaction:
//! 1. `api.rs`: the trait, what callers may rely on;
//! 2. `embedded.rs`: one writer, transactions that arrive together share a durable commit of
//!    `embedded/file.rs`;
//! 3. `transaction.rs`: what conditions and changes mean, shared by all stores;
//! 4. `history.rs`: the change reaches the watches; `sessions.rs`: keys that end with their owner.
//!
//! Beside it: `simulated.rs`, the same store in memory with faults, for simulation; `counter.rs`,
//! ids by compare and set; `conformance.rs`, the suite that both stores pass.
//!
//! Invariants: a committed transaction is durable and all of it is seen or nothing; revisions only
//! grow; a watch delivers every change once and in order or says that it cannot; a key put with a
//! session is gone once the session is; an id is issued once.
//!
//! Not here: elections, locks, time. The embedded store serves one process.

pub mod api;
pub mod counter;
pub mod embedded;
pub mod simulated;

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
pub use simulated::{Fault, Faults, SimulatedCoordinator, SimulatedStore};
