//! Blockyard: a durable object store that speaks Azure Blob REST and S3 over the same bytes.
//!
//! Modules are in layer order. A module uses only modules of lower layers (`ARCHITECTURE.md`);
//! `tests/it/layering.rs` checks it.

// layer 0: values, no I/O, no async
pub mod types;

// layer 1: the world behind traits; queries of a blob, pure
pub mod env;
pub mod query;
pub mod telemetry;

// layer 2: dialects, signatures, the coordinator, calls between nodes, the audit log
pub mod audit_log;
pub mod auth;
pub mod coordinator;
pub mod protocol;
pub mod rpc;

// layer 3
pub mod capacity;

// layer 4
pub mod index;

// layer 5
pub mod frontend;
pub mod manager;
pub mod reclaim;

// layer 6: the admin listener, the node
pub mod admin;
pub mod node;

// layer 7: the commands
pub mod cli;
