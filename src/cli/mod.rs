//! The command line of the program: its commands, their arguments and their output.
//!
//! The main path: `main.rs` parses a [`Cli`] (`args.rs`) and passes it to `run.rs`, which calls the
//! command. Each command has a file with its arguments, its work and its output:
//! - `serve.rs` starts a node, prints how to connect (`serve/banner.rs`), and stops the node at a
//!   signal. `variables.rs` refuses misspelled variables; `serve/open_files.rs`
//!   raises the limit of open files.
//! - `azurite.rs` does the same with the flags of Azurite.
//! - `check.rs`, `backup.rs` with `--stopped`, `restore` and `key.rs` with `--stopped` work on the
//!   store of a stopped node, with functions of `node`.
//! - `account.rs`, `partitions.rs`, `disk.rs`, `key.rs`, `backup.rs`, `console.rs`, `trace.rs` and
//!   `fault.rs` send requests to the admin listener of a running node through `admin/`. `health.rs`
//!   asks it whether it serves, `status.rs` shows its state.
//! - `files/` lists, copies and deletes blobs of this or another blob service, and local files.
//! - `bench/` measures a blob or S3 service; its load driver is also that of `benches/load`.
//! - `sas.rs` makes shared access signatures and needs no node.
//! - `keygen.rs` prints a new account key.
//! - `completions.rs` and `man.rs` describe the command line itself, for shells and for `man`.
//!
//! `error.rs` has the errors of commands and their exit codes. `output.rs` prints, `table.rs` makes
//! the tables of lists, and `escaped.rs` removes control characters from text for a terminal.
//! `runtime.rs` starts the threads, `trust.rs` loads the certificates that commands trust.
//!
//! Invariants: no secret is printed except those that the user requested, the published development
//! key, and a login link on a terminal. With `--json` each line of output is one JSON value.
//! Warnings and errors go to standard error. Only `main.rs` ends the process.

mod account;
mod admin;
mod args;
mod azurite;
mod backup;
pub mod bench;
mod check;
mod cluster;
mod completions;
mod console;
mod disk;
mod error;
mod escaped;
mod fault;
mod files;
mod health;
mod key;
mod keygen;
mod live;
mod man;
mod node;
mod output;
mod partitions;
mod run;
mod runtime;
mod sas;
mod scope;
mod serve;
mod status;
mod table;
mod trace;
mod trust;
mod user;
mod variables;

pub use args::Cli;
pub use azurite::arguments;
pub use azurite::error::AzuriteError;
pub use error::CliError;
pub use output::complaint;
pub use run::run;
