//! A node of a cluster, as `blockyard node` runs it.
//!
//! 1. `settings.rs`: what is set for it, beside the settings of a node alone; `coordinator.rs`
//!    connects to etcd.
//! 2. `running.rs`: the node. It starts like a node alone, up to its disks.
//! 3. `join.rs`: it gets an id, begins a life, follows nodes and groups, and answers the calls of
//!    other nodes for its copies.
//! 4. `reached.rs`: how it reaches the copies of other nodes.
//! 5. `serve.rs`: once it has the claim to serve the index, it starts front end, index, manager and
//!    reclaim, with the extents of the cluster in place of its own. `watch_holder.rs`: whether the
//!    node that has the claim is gone.
//!
//! 6. `repair.rs`: there, copies that are missing are made again. `absent.rs`: who is away since
//!    when. `unfinished.rs`: what is left to repair, for `status.rs`.
//!
//! `init.rs` makes a cluster, `status.rs` shows one, `change.rs` drains and removes nodes.
//!
//! Invariants: an answer is right although another process may have taken over, since members of
//! the logs give leases for it (`index/engine/leases.rs`) · a process that has lost the claim
//! changes no partition and no account in the coordinator (`coordinator/guarded.rs`) · a data
//! directory belongs to one node of one cluster, for ever.
//!
//! Not here yet: several processes that serve parts of the index, certificates of nodes.

mod absent;
mod change;
mod coordinator;
mod init;
mod join;
mod reached;
mod repair;
mod running;
mod serve;
mod settings;
mod status;
mod unfinished;
mod watch_holder;

pub use change::{Wanted, change};
pub use coordinator::CoordinatorFault;
pub use init::{Init, init};
pub use running::ClusterNode;
pub use settings::{CoordinatorSettings, NodeSettings, Role, SettingsError};
pub use status::{ClusterStatus, NodeStatus, status};
