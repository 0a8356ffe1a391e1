//! What a running node is made of: settings, assembly, shutdown; and work on the store of a stopped
//! node. The commands are in `cli`, above.
//!
//! The main path, `blockyard serve`:
//! 1. `settings.rs`: flags, variables and the file are one list;
//! 2. `config.rs`: merged, defaults filled in, checked once; `accounts.rs`: names and keys;
//!    `oidc.rs`: issuers of bearer tokens;
//! 3. `listeners.rs`: both ports are taken before data is touched;
//! 4. `storage.rs`: the disks are opened; `start.rs`: they are recovered, and the coordinator is
//!    opened, as in the simulation too; `disks.rs` misses a forgotten disk and adds none unasked;
//!    `master_key.rs`: the key ring of the store's secrets; `reseal.rs`: those of before are
//!    sealed;
//! 5. `account_list.rs`: the accounts, as far as their rows can be read;
//!    `tls.rs`: the certificate; `assembly.rs`: index, router, write pool, reclaim, as the
//!    simulation has them too; `roles.rs`: the front end on top;
//! 6. `running.rs`: the roles are built from below, `metrics.rs` shows the program itself, and the
//!    roles go down from above.
//!
//! Beside it: `disk_store.rs` shows, drains and removes disks, `key_store.rs` rotates master keys;
//! `backup.rs` copies a store, for a command or the running node (`backup_store.rs`); `erase.rs`
//! removes plain secrets of before from files; `check.rs` verifies a stopped node.
//!
//! Invariants: nothing is announced before it can serve; no secret is logged; the published
//! development key is never served beyond loopback.

pub mod account_file;
pub mod account_list;
pub mod accounts;
pub mod admin_address;
pub mod admin_token;
pub mod backup;
pub mod backup_store;
pub mod certificate_files;
pub mod check;
pub mod config;
pub mod erase;
pub mod error;
pub mod settings;

pub mod assembly;
pub mod disk_list;
pub mod disk_store;
pub mod disks;
pub mod files;
pub mod key_store;
pub mod listen_address;
pub mod listeners;
pub mod master_key;
mod metrics;
pub mod oidc;
mod overlay_disk;
pub mod reseal;
pub mod roles;
pub mod running;
pub mod size;
pub mod start;
pub mod storage;
pub mod switch;
#[cfg(test)]
mod testing;
pub mod tls;
