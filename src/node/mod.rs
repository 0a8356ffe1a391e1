//! The program: settings, assembly, shutdown, and the commands beside `serve`.
//!
//! The main path, `blockyard serve`:
//! 1. `cli.rs` and `settings.rs`: flags, variables and the file are one list;
//!    `variables.rs` refuses misspelled ones;
//! 2. `config.rs`: merged, defaults filled in, checked once; `accounts.rs`: names and keys; `oidc.rs`: issuers of bearer
//!    tokens;
//! 3. `open_files.rs`: as many as are allowed; `listeners.rs`: both ports are taken before data is touched;
//! 4. `storage.rs`: disks, extents, coordinator are opened and recovered; `disks.rs` misses a
//!    forgotten one and adds none unasked;
//! 5. `tls.rs`: the certificate; `roles.rs`: index, front end, reclaim;
//! 6. `serve.rs`: the roles are built from below, `banner.rs` tells the user, `signals.rs` ends it, the roles go down
//!    from above.
//!
//! Beside it: `backup.rs` copies a store, for `backup_command.rs` and a running node; `disk_store.rs` shows, drains and removes disks for `disk_command.rs`; `check.rs`
//! verifies a stopped node, `sas.rs` shared access signatures, `health.rs` asks a running node;
//! `account_command.rs`, `admin_command.rs` and `partition_command.rs` (flags in
//! `partition_args.rs`, the heat map in `partition_watch.rs`) send commands to its admin listener
//! through `admin_client.rs`, with the token of `admin_token.rs`; `command.rs` maps commands to
//! exit codes.
//!
//! Invariants: nothing is announced before it can serve; no secret is printed or logged; the published development key
//! is never served beyond loopback.

pub mod account_command;
pub mod accounts;
pub mod admin_address;
pub mod admin_client;
pub mod admin_command;
pub mod admin_token;
pub mod backup;
pub mod backup_command;
pub mod banner;
pub mod certificate_files;
pub mod check;
pub mod cli;
pub mod command;
pub mod config;
pub mod error;
pub mod settings;

pub mod disk_command;
pub mod disk_store;
pub mod disks;
pub mod files;
pub mod grant_args;
pub mod health;
pub mod listeners;
pub mod oidc;
pub mod open_files;
pub mod partition_args;
pub mod partition_command;
pub mod partition_watch;
pub mod roles;
pub mod sas;
pub mod serve;
pub mod signals;
pub mod storage;
pub mod tls;
pub mod variables;
