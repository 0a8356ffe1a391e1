//! `blockyard bench`: measures a blob or S3 service under load.
//!
//! Main path: `command.rs` reads the arguments (`args.rs`), `service.rs` finds the service and the
//! credentials, `plan.rs` makes the workloads, `bed.rs` makes the container and removes everything
//! at the end, `driver/` executes, `report.rs` shows. `driver/` is the load driver of
//! `benches/load` too.
//!
//! Invariants: the bench writes only below a prefix of its own, in a container that it creates
//! unless an existing one is named, and removes all that it wrote, also after Ctrl-C. No request
//! is retried: failures are counted. No key and no signature is printed.

mod args;
mod bed;
mod command;
pub mod driver;
mod plan;
mod report;
mod service;

pub use args::BenchArgs;
pub(super) use command::bench;
