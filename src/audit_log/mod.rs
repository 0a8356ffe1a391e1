//! The audit log: who changed what, and with `--audit-requests` every request. Each line is one
//! JSON object, written to a file or to standard output. `docs/audit-log.md` describes the lines.
//!
//! It is not related to reclaim's audit, which finds bytes that no row names. This log is always
//! called "audit log", never "audit".
//!
//! 1. `line.rs`: the content of a line.
//! 2. `queue.rs`: a bounded queue of lines, and [`AuditLog`], the handle that adds lines to it.
//! 3. `writer.rs`: takes lines from the queue on a thread of its own; `file.rs` appends and
//!    rotates.
//!
//! Invariants: no request waits for the disk of the log. A request's line without room in the queue
//! is dropped. A change waits up to [`CHANGE_WAIT`] for room before its line is dropped. Dropped
//! lines are counted, logged, and recorded by a line of the log itself. A line is written
//! completely and once. No line contains a secret: there is no field for a query, a header or a
//! body.

mod file;
mod line;
mod metrics;
mod queue;
mod writer;

pub use line::{Change, Entry, Principal, Subject, Thing};
pub use metrics::Metrics;
pub use queue::{AuditLog, CHANGE_WAIT};
pub use writer::{Destination, OpenError, Settings, StartedLog, Writer};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
