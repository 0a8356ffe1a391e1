//! Capacity nodes: append-only extents on local disks.
//!
//! - `api.rs`: the interface, [`Capacity`].
//! - `node.rs`: implements the interface over all disks. `home.rs`: the disk that holds an extent;
//!   `placement.rs`: the choice of a disk for a new extent. Work on several disks: `drain.rs`
//!   empties one, `remove.rs` removes an extent from all of them, `backup.rs` copies extents to
//!   another node, `twins.rs` handles an extent that is on two disks.
//! - `disk/`: one disk: start, append, read, seal, free, compaction, scrub, check.
//! - `journal/`: the journal of a disk, where small appends share one sync.
//! - `extent/`: one extent: the bytes of its file, and its state in memory.
//! - `groups/`: in a cluster, which nodes have copies of an extent.
//! - `config.rs`, `metrics.rs`, `health.rs` (whether a disk takes writes) and `units.rs` are used
//!   by all of these.
//!
//! Main path of a write:
//! 1. `node.rs` finds the extent and its disk;
//! 2. `disk/append.rs` chooses the journal or the extent's file;
//! 3. `extent/frame.rs` encodes frames;
//! 4. `journal/writer.rs` makes small appends durable with one shared sync;
//! 5. `disk/checkpoint.rs` moves journaled bytes to the extents' files;
//! 6. `disk/seal.rs` ends an extent.
//!
//! Main path of a read: `node.rs` finds the disk, `disk/read.rs` reads and verifies the frames.
//!
//! Layouts: `api-spec/extent.md`, `api-spec/journal.md`.
//!
//! Invariants: an acknowledgement of offset x means that all bytes below x are durable (I1, I4);
//! only verified bytes are served (I13); after a failed write or sync the disk takes no writes
//! until a restart; a second replay changes nothing (I14); the catalog is a cache, and the files
//! are authoritative.
//!
//! Not here: which extent a writer uses, when it rolls, which locations are referenced (front end,
//! index, reclaim).

pub mod api;
mod backup;
mod config;
mod disk;
mod drain;
mod extent;
pub mod groups;
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
pub use extent::frame::{FRAME_PAYLOAD_MAX, end_after, merge, part_of_frames};
pub use journal::replay::JournalError;
pub use metrics::{CapacityMetrics, DiskMetrics};
pub use node::CapacityNode;
pub use untrusted::decode_untrusted;
