//! The program: settings, assembly, shutdown, and the commands beside `serve`.
//!
//! The main path, `blockyard serve`:
//! 1. `cli.rs` and `settings.rs`: flags, variables and the file are one list;
//!    `variables.rs` refuses misspelled ones;
//! 2. `config.rs`: merged, defaults filled in, checked once; `accounts.rs`: names and keys;
//!    `oidc.rs`: issuers of bearer tokens;
//! 3. `open_files.rs`: as many as are allowed; `listeners.rs`: both ports are taken before data is
//!    touched;
//! 4. `storage.rs`: the disks are opened; `start.rs`: they are recovered, and the coordinator is
//!    opened, as in the simulation too; `disks.rs` misses a forgotten disk and adds none unasked;
//!    `master_key.rs`: the key ring of the store's secrets; `reseal.rs`: those of before are
//!    sealed;
//! 5. `account_list.rs`: the accounts, as far as their rows can be read;
//!    `tls.rs`: the certificate; `assembly.rs`: index, router, write pool, reclaim, as the
//!    simulation has them too; `roles.rs`: the front end on top;
//! 6. `serve.rs`: the roles are built from below, `metrics.rs` shows the program itself,
//!    `banner.rs` tells the user, `signals.rs` ends it, the roles go down from above.
//!
//! Beside it: `disk_store.rs` shows, drains and removes disks for `disk_command.rs`, `key_store.rs`
//! rotates master keys for `key_command.rs`; `backup.rs` copies a store, for
//! `backup_command.rs` or the running node (`backup_store.rs`); `erase.rs` removes plain secrets of
//! before from files;
//! `check.rs` verifies a stopped node, `sas.rs` shared access signatures, `health.rs` asks a
//! running node; `account_command.rs`, `admin_command.rs` and `partition_command.rs` (flags in
//! `partition_args.rs`, the heat map in `partition_watch.rs`) send commands to its admin listener
//! through `admin_client.rs`, with the token of `admin_token.rs`; `command.rs` maps commands to
//! exit codes.
//!
//! Invariants: nothing is announced before it can serve; no secret is printed or logged; the
//! published development key is never served beyond loopback.

pub mod account_command;
pub mod account_file;
pub mod account_list;
pub mod accounts;
pub mod admin_address;
pub mod admin_client;
pub mod admin_command;
pub mod admin_token;
pub mod backup;
pub mod backup_command;
pub mod backup_store;
pub mod banner;
pub mod certificate_files;
pub mod check;
pub mod cli;
pub mod command;
pub mod config;
pub mod erase;
pub mod error;
pub mod settings;

pub mod assembly;
pub mod disk_command;
pub mod disk_list;
pub mod disk_store;
pub mod disks;
pub mod files;
pub mod grant_args;
pub mod health;
pub mod key_command;
pub mod key_store;
pub mod listen_address;
pub mod listeners;
pub mod master_key;
mod metrics;
pub mod oidc;
pub mod open_files;
mod overlay_disk;
pub mod partition_args;
pub mod partition_command;
pub mod partition_watch;
pub mod reseal;
pub mod roles;
pub mod sas;
pub mod serve;
pub mod signals;
pub mod size;
pub mod start;
pub mod storage;
pub mod switch;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod variables;
