//! A node of a cluster, as `blockyard node` runs it.
//!
//! 1. `settings.rs`: what is set for it, beside the settings of a node alone; `coordinator.rs`
//!    connects to etcd. `token.rs`: a token gets a new node the master key.
//! 2. `running.rs`: the node. It starts like a node alone, up to its disks.
//! 3. `join.rs`: it gets an id, begins a life (`life.rs`), follows nodes and groups, and answers
//!    the calls of other nodes. `authority.rs`: the certificate with which it proves who it is.
//!    `copies.rs`: it settles and mends its copies. `tasks.rs`: how it runs all of that.
//! 4. `reached.rs`: how it reaches other nodes. `index_links.rs`: how it asks those that serve
//!    partitions, and how others ask this one about its requests.
//! 5. `front.rs`: it answers clients as soon as there are partitions.
//! 6. `serve.rs`: under a claim of its own it serves the partitions that the map gives to it, and
//!    reclaims for them.
//! 7. `manage.rs`: one node has the claim to say which node serves which partition.
//!    `watch_holder.rs`: whether the process that has a claim is gone. `repair.rs`: there, copies
//!    that are missing are made again. `absent.rs`: who is away since when. `unfinished.rs`: what
//!    is left to repair, for `status.rs`.
//! 8. `metrics.rs` shows what the node knows of all that; `group_counts.rs` counts groups.
//!
//! `init.rs` makes a cluster, `adopt.rs` makes one of a node alone, `status.rs` shows one,
//! `change.rs` drains and removes nodes.
//!
//! Invariants: an answer is right although another process may have taken over, since members of
//! the logs give leases for it (`index/engine/leases.rs`) · a process that has lost a claim changes
//! nothing in the coordinator that it needs the claim for (`coordinator/guarded.rs`) · a data
//! directory belongs to one node of one cluster, for ever · a process with a front end whose
//! session has ended ends: its requests do not go on under another session (ADR 0057).

mod absent;
mod adopt;
mod authority;
mod change;
mod coordinator;
mod copies;
mod front;
mod group_counts;
mod index_links;
mod init;
mod join;
mod life;
mod manage;
mod metrics;
mod reached;
mod repair;
mod running;
mod serve;
mod settings;
mod status;
mod tasks;
mod token;
mod unfinished;
mod watch_holder;

pub use adopt::{Adopt, AdoptError, AdoptedStore, adopt, undo};
pub use authority::AuthorityError;
pub use change::{Wanted, change};
pub use coordinator::CoordinatorFault;
pub use init::{Init, init};
pub use running::ClusterNode;
pub use settings::{CoordinatorSettings, NodeSettings, Role, SettingsError};
pub use status::{ClusterStatus, NodeStatus, status};
pub use token::{TokenError, new_token};
