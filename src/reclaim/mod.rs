//! Gives space back: what rows say is garbage, what expired, what belonged to deleted containers,
//! what nothing names.
//!
//! Main path: 1. `service.rs` runs the loops, `state.rs` is what all steps work on ·
//! 2. `garbage.rs` frees what garbage rows name, then forgets the rows; `met.rs` remembers which
//!    reads each row waits for, `readers.rs` watches the oldest read ·
//! 3. `expire.rs` drops staged blocks a week after the last Put Block · 4. `purge.rs` removes the
//!    rows of deleted containers, twice · `tags.rs` brings the tag index up to changes that a crash
//!    left out · 5. `audit.rs` frees what no row names at all (bytes of a crash between append and
//!    commit, frees forgotten with a lost catalog) by holding extents against a walk of every row
//!    (`walk.rs`, `live.rs`), in rounds whose cursor survives a restart (`cursor.rs`, ADR 0026) ·
//!    6. `verify.rs` reports logs and runs that no record has or that are missing; `report.rs` is
//!    what an audit says it did.
//!
//! Invariants: nothing referred to is ever freed (I10): any error, and any partition that cannot
//! prove that it still commits, ends an audit before it frees. Everything unreferenced is freed in
//! the end (I11): each step may be cut off anywhere and is taken up again. Free first, forget
//! after: a crash between them frees twice, which does nothing.
//!
//! Does not: move or rewrite anything, decide what is garbage (the index does), know how space is
//! given back (capacity does).

mod audit;
mod config;
pub(crate) mod cursor;
mod error;
mod expire;
mod garbage;
mod live;
mod met;
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
pub use metrics::ReclaimMetrics;
pub use partitions::{CoordinatorPartitions, Partitions};
pub use report::AuditReport;
pub use state::{Reclaim, Setup};
