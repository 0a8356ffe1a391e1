//! Garbage collection: frees bytes that rows mark as garbage, expires staged blocks and
//! soft-deleted rows, removes the rows of deleted containers, and frees bytes that no row names.
//!
//! Main path:
//! 1. `service.rs` runs the loops; `state.rs` holds what all steps work on.
//! 2. `garbage.rs` frees the locations of garbage rows, then deletes the rows. `garbage_marks.rs`
//!    keeps which reads each row waits for; `readers.rs` watches the oldest read. `roll.rs` seals
//!    open extents that hold much garbage.
//! 3. `expire.rs` deletes staged blocks a week after the last Put Block, and soft-deleted rows when
//!    they can no longer be restored.
//! 4. `purge.rs` deletes the rows of deleted containers, twice.
//! 5. `tags.rs` applies updates of the tag index that a crash left out.
//! 6. `audit.rs` frees bytes that no row names: those of a crash between append and commit, and
//!    those whose free was lost with the catalog. It compares the extents with a walk over all rows
//!    (`walk.rs`, `live.rs`). A round of audits has a cursor that survives a restart (`cursor.rs`,
//!    ADR 0026).
//! 7. `verify.rs` reports logs and runs that no record names, or that are missing. `report.rs` is
//!    the result of an audit.
//!
//! Invariants:
//! - No referenced byte is freed (I10). An error ends an audit before it frees anything, and so
//!   does a partition that cannot prove that it still commits.
//! - Every unreferenced byte is freed eventually (I11). Each step may be interrupted anywhere; a
//!   later one continues.
//! - Bytes are freed before their garbage row is deleted. A crash in between frees them twice,
//!   which is harmless.
//!
//! `invariant.rs` names the asserted invariants. If one fails, the step returns the error in
//! `error.rs`.
//!
//! Reclaim never moves or rewrites data. The index decides what is garbage; capacity knows how
//! space is freed.

mod audit;
mod config;
pub(crate) mod cursor;
mod error;
mod expire;
mod garbage;
mod garbage_marks;
mod invariant;
mod live;
mod metrics;
mod partitions;
mod purge;
mod readers;
mod report;
mod roll;
mod service;
mod state;
mod tags;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

pub use config::ReclaimConfig;
pub use error::Error;
pub use invariant::Invariant;
pub use metrics::ReclaimMetrics;
pub use partitions::{CoordinatorPartitions, Partitions};
pub use report::AuditReport;
pub use state::{Reclaim, Setup};
