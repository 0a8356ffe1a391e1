//! `blockyard check`: verifies a stopped node's data directories, from the bytes up.
//!
//! 1. Each disk: every page, frame and journal batch against its checksum. Changes nothing.
//! 2. The store is opened as in a start, which replays the journal to the extents. The
//!    coordinator's file and the catalog are not changed. In a store that was stopped regularly
//!    only the journal is written.
//! 3. The coordinator's rows, and that the partitions tile the key space (I5).
//! 4. Each partition: every row decodes, every byte that it names exists and matches its checksum
//!    from ingest (I1, I10, I13), and the rows of each blob are consistent.
//!
//! `run.rs` runs these steps and reports to `progress.rs`. `report.rs` is the result; `affected.rs`
//! lists the blobs that damage affects.

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
