//! What a running node is made of, and work on the store of a stopped one. The commands are in
//! `cli`, above.
//!
//! The main path, which is that of `blockyard serve`:
//! 1. `config/`: flags, variables and the file become one [`config::Config`], checked once;
//! 2. `listeners.rs`: both ports are taken before data is touched;
//! 3. `running.rs` goes on from below: the admin listener answers first, with the token of
//!    `admin_token.rs` and the certificate of `tls/`;
//! 4. `storage/`: the disks are opened and recovered, and the coordinator is opened, as in the
//!    simulation too; `disks/` misses a forgotten disk and adds none unasked;
//! 5. `keys/`: the key ring of the store's secrets; plain secrets of before are sealed;
//! 6. `roles.rs`: the layers above. `assembly.rs`: index, router, write pool, reclaim, as the
//!    simulation has them too; `account_list.rs`: the accounts, as far as their rows can be read;
//!    the front end on top;
//! 7. `running.rs` again: `metrics.rs` shows the program itself; at the end the roles go down from
//!    above.
//!
//! Beside it: `disks/` shows, drains and removes disks; `keys/` rotates master keys; `backup/`
//! copies a store, stopped or not, and restores it; `check/` verifies a stopped one. `error.rs` is
//! why a node does not start; `files.rs` writes small files durably, `paths.rs` compares paths.
//!
//! Invariants: nothing is told as ready before it can serve; no secret is logged; the published
//! development key is never served beyond loopback.

mod account_list;
mod admin_token;
pub mod assembly;
pub mod backup;
pub mod check;
pub mod config;
pub mod disks;
pub mod error;
mod files;
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
