//! `blockyard check`: verifies a stopped node's data directories, from the bytes up.
//!
//! 1. Each disk: every page, frame and journal batch against its checksum. Changes nothing.
//! 2. The store is opened as a start opens it: what the journal holds goes to the extents. The
//!    coordinator's file and the catalog stay as they are; of a store that was stopped in order
//!    nothing but the journal is written.
//! 3. The coordinator's rows, and that the partitions tile the key space (I5).
//! 4. Each partition: every row decodes, every byte it names is there and is what was ingested (I1,
//!    I10, I13), and the rows of each blob agree with each other.
//!
//! `run.rs` does this in order, `progress.rs` is told meanwhile. `report.rs` is what was found,
//! `affected.rs` whom damage concerns.

mod affected;
mod progress;
mod report;
mod run;

pub use affected::Affected;
pub use affected::Extent;
pub use affected::OfContainer;
pub use affected::Unread;
pub use progress::Progress;
#[cfg(test)]
pub(in crate::node) use progress::Silent;
pub use report::Disk;
pub use report::Index;
pub use report::Report;
pub use run::check;

#[cfg(test)]
mod tests;
