//! Capacity nodes: append-only extents on local disks.
//!
//! Main path of a write: 1. `node.rs` finds the extent and its disk; 2. `append.rs` decides journal
//! or file;
//! 3. `frame.rs` makes frames; 4. `journal/` shares one sync among small appends; 5.
//!    `checkpoint.rs` moves journaled bytes to the extents' files; 6. `seal.rs` ends an extent.
//!    Reads: `read.rs`. Space back: `free.rs`, `remove.rs`, `compact.rs`. A disk is emptied:
//!    `drain.rs`. Starts: `open.rs`, `recover.rs`, `walk.rs`, `twins.rs`. Damage: `scrub.rs` while
//!    running, `check.rs` while stopped. `store.rs` is what these share for one disk;
//!    `open_files.rs` bounds the files it has open; `extent.rs` and `tail.rs` are an extent in
//!    memory. Layouts: `api-spec/extent.md`, `api-spec/journal.md`.
//!
//! Invariants: an answer for offset x means all bytes below x are durable (I1, I4); nothing is
//! served that was not verified (I13); a failed write or sync ends all writes to its disk until a
//! restart; replay twice changes nothing (I14); the catalog is never believed against a file.
//!
//! Not here: who writes which extent, when to roll, which location is referenced (front end, index,
//! reclaim).

pub mod api;
mod append;
mod backup;
mod catalog;
mod catalog_sim;
mod check;
mod checkpoint;
mod compact;
mod config;
mod drain;
mod extent;
mod files;
mod format;
mod frame;
mod free;
mod header;
mod health;
mod home;
mod journal;
mod map;
mod metrics;
mod node;
mod open;
mod open_error;
mod open_files;
mod opening;
mod placement;
mod ranges;
mod read;
mod recover;
mod remove;
mod scrub;
mod seal;
mod space;
mod store;
mod tail;
#[cfg(test)]
mod tests;
mod twins;
mod units;
mod untrusted;
mod walk;

pub use api::{
    AppendRequest, Appended, Audited, Capacity, Durability, Error, ExtentInfo, ExtentKind,
    ExtentState, LogFrame, Payload, ScrubReport,
};
pub use catalog_sim::SimulatedCatalog;
pub use check::{CheckProgress, CheckReport, CheckedExtent, Problem, check_disk};
pub use config::{CapacityConfig, CatalogPlace};
pub use drain::{DiskInfo, Drained};
pub use format::{FORMAT_FILE, disk_number};
pub use frame::{FRAME_PAYLOAD_MAX, end_after, merge};
pub use journal::replay::JournalError;
pub use metrics::{CapacityMetrics, DiskMetrics};
pub use node::CapacityNode;
pub use open_error::OpenError;
pub use untrusted::decode_untrusted;
