//! Backups: a copy of a store in a directory of its own, and the way back. The node may serve
//! meanwhile or be stopped. ADR 0024 says why the copy is consistent, `docs/backup.md` how to use
//! it.
//!
//! 1. The directory is locked until the end.
//! 2. `source.rs`: what is copied: of a node that serves a consistent cut, which keeps what it
//!    names. A store that cannot be copied is refused here, and the last backup stays good.
//! 3. `marks.rs`: the directory is marked as incomplete.
//! 4. `copy.rs`: logs and runs are copied; each frame is verified. What is there already is not
//!    copied again.
//! 5. `rows.rs`: the coordinator's rows are written, and compared with what there is to copy.
//! 6. `copy.rs`: what the store no longer has is removed, and data is copied.
//! 7. `marks.rs`: `backup.json` is written and the mark is removed, durably.
//!
//! `make.rs` does this in order. A restore does the same from a backup to a new directory.
//!
//! `store.rs`: the backups of a running node, which its admin listener begins and shows. The node
//! gives a backup up when its directory does not answer (`attempt.rs`); `watched_disk.rs` notes the
//! steps.

mod attempt;
mod copy;
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
