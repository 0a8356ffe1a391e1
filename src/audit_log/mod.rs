//! The audit log: who changed what, and, when asked for, every request. One JSON object a line, to
//! a file or to standard output. `docs/audit-log.md` describes the lines.
//!
//! It has nothing to do with reclaim's audit, which verifies extents: here the two words always
//! stand together.
//!
//! 1. `line.rs`: what a line holds.
//! 2. `queue.rs`: [`AuditLog`], the handle of whoever has something to tell; a bounded queue.
//! 3. `writer.rs`: takes lines from the queue on a thread of its own; `file.rs` appends and
//!    rotates.
//!
//! Invariants: no request waits for the disk of the log; a request's line that finds no room is
//! dropped; a change waits up to [`CHANGE_WAIT`] for room before its line is dropped. What was
//! dropped is counted, logged, and told by a line of the log itself. A line is written whole, once.
//! No line holds a secret: there is no field for a query, a header or a body.

mod file;
mod line;
mod metrics;
mod queue;
mod writer;

pub use line::{Change, Entry, Principal, Subject, Thing};
pub use metrics::Metrics;
pub use queue::{AuditLog, CHANGE_WAIT};
pub use writer::{Destination, OpenError, Settings, Writer};

#[cfg(test)]
mod tests;
