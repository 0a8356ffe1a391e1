//! Backups: a copy of a store in a directory of its own, and the restore from it. The node may
//! serve or be stopped. ADR 0024 says why the copy is consistent, `docs/backup.md` how to use it.
//!
//! 1. The directory is locked until the end.
//! 2. `source.rs` lists the content to copy. On a serving node this is a consistent cut, whose
//!    bytes are not freed. A store that cannot be copied is refused here, and the last backup stays
//!    valid.
//! 3. `marks.rs` marks the directory as incomplete.
//! 4. `copy.rs` copies logs and runs, and verifies each frame. Extents that an earlier backup
//!    copied are not copied again.
//! 5. `rows.rs` writes the coordinator's rows, and checks that all extents that they name are
//!    copied.
//! 6. `copy.rs` removes extents that the store no longer has, and copies data.
//! 7. `marks.rs` writes `backup.json` and removes the mark, durably.
//!
//! `make.rs` runs these steps. A restore runs them from a backup to a new directory.
//!
//! `store.rs`: the backups of a running node, for the admin listener. The node gives a backup up
//! when its directory does not answer (`attempt.rs`); `watched_disk.rs` reports the progress of
//! calls.

mod attempt;
mod copy;
mod destination;
mod error;
mod make;
mod mark;
mod marks;
mod progress;
mod rows;
mod source;
mod store;
mod target;
mod watched_disk;

pub use error::BackupError;
pub use make::RestoreFrom;
pub use make::backup;
pub use make::restore;
pub(in crate::node) use mark::refuse_marked;
pub use marks::Summary;
pub use progress::Progress;
pub use progress::Step;
pub use source::Source;
pub use store::NodeBackups;

#[cfg(test)]
mod tests;
