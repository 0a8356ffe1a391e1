//! Capacity nodes: append-only extents on local disks.
//!
//! - `api.rs`: the interface, [`Capacity`].
//! - `node.rs`: all disks behind it. `home.rs`: where an extent is; `placement.rs`: which disk gets
//!   a new one. What concerns several disks: `drain.rs` empties one, `remove.rs` removes an extent
//!   everywhere, `backup.rs` copies extents to another node, `twins.rs` meets one on two disks.
//! - `disk/`: one disk: start, append, read, seal, free, compaction, scrub, check.
//! - `journal/`: the journal of a disk, where small appends share one sync.
//! - `extent/`: one extent: its file, byte by byte, and what is known of it in memory.
//! - `config.rs`, `metrics.rs`, `health.rs` (whether a disk takes writes) and `units.rs` serve all.
//!
//! Main path of a write: 1. `node.rs` finds the extent and its disk; 2. `disk/append.rs` decides
//! journal or file; 3. `extent/frame.rs` makes frames; 4. `journal/writer.rs` shares one sync among
//! small appends; 5. `disk/checkpoint.rs` moves journaled bytes to the extents' files;
//! 6. `disk/seal.rs` ends an extent. Layouts: `api-spec/extent.md`, `api-spec/journal.md`.
//!
//! Invariants: an answer for offset x means all bytes below x are durable (I1, I4); nothing is
//! served that was not verified (I13); a failed write or sync ends all writes to its disk until a
//! restart; replay twice changes nothing (I14); the catalog is never believed against a file.
//!
//! Not here: who writes which extent, when to roll, which location is referenced (front end, index,
//! reclaim).

pub mod api;
mod backup;
mod config;
mod disk;
mod drain;
mod extent;
mod health;
mod home;
mod journal;
mod metrics;
mod node;
mod placement;
mod remove;
#[cfg(test)]
mod tests;
mod twins;
mod units;
mod untrusted;

pub use api::{
    AppendRequest, Appended, Audited, Capacity, Durability, Error, ExtentInfo, ExtentKind,
    ExtentState, LogFrame, Payload, ScrubReport,
};
pub use config::{CapacityConfig, CatalogPlace};
pub use disk::catalog_sim::SimulatedCatalog;
pub use disk::check::{CheckProgress, CheckReport, CheckedExtent, Problem, check_disk};
pub use disk::format::{FORMAT_FILE, disk_number};
pub use disk::open_error::OpenError;
pub use drain::{DiskInfo, Drained};
pub use extent::frame::{FRAME_PAYLOAD_MAX, end_after, merge};
pub use journal::replay::JournalError;
pub use metrics::{CapacityMetrics, DiskMetrics};
pub use node::CapacityNode;
pub use untrusted::decode_untrusted;
