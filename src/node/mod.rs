//! A running node: configuration, storage, roles, shutdown. Also work on the store of a stopped
//! node. The commands are in `cli`, above.
//!
//! The main path is that of `blockyard serve`:
//! 1. `config/`: flags, variables and the file become one [`config::Config`], checked once.
//! 2. `listeners.rs` binds both ports before data is touched.
//! 3. `running.rs` starts everything from the bottom up. `foundation.rs`: the admin listener, which
//!    answers first, with the token of `admin_token.rs` and the certificate of `tls/`.
//! 4. `storage/` opens and recovers the disks and opens the coordinator; the simulation uses it
//!    too. `disks/` checks the list of disks.
//! 5. `keys/` opens the key ring of the store's secrets, and seals secrets that an older release
//!    left plain.
//! 6. `roles.rs` starts the layers above. `assembly.rs`: index, router, write pool, reclaim, also
//!    for the simulation. `account_list.rs`: the accounts whose rows can be read. Then the front
//!    end.
//! 7. `running.rs` again: `metrics.rs` has metrics of the process. At the end the roles stop from
//!    the top down.
//!
//! `cluster/` is the main path of `blockyard node`, which starts the same parts as a node of a
//! cluster.
//!
//! Also: `disks/` shows, drains and removes disks; `keys/` rotates master keys; `backup/` copies a
//! store, also of a running node, and restores it; `check/` verifies a stopped store. `error.rs`
//! says why a node does not start; `files.rs` writes small files durably; `paths.rs` compares
//! paths.
//!
//! Invariants: the node reports ready only when it can serve. No secret is logged. The published
//! development key is never served beyond loopback.

pub mod account_list;
mod admin_token;
pub mod assembly;
pub mod backup;
pub mod check;
pub mod cluster;
pub mod config;
pub mod disks;
pub mod error;
mod files;
mod foundation;
pub mod keys;
pub mod listeners;
mod metrics;
mod paths;
mod roles;
pub mod running;
pub mod storage;
#[cfg(test)]
mod testing;
pub mod tls;
