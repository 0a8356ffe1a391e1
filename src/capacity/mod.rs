//! Capacity nodes: append-only extents on local disks.
//!
//! - `api.rs`: the interface, [`Capacity`].
//! - `member.rs`: the interface of one node of a cluster, [`Member`]: its copies of extents.
//! - `cluster/`: implements [`Capacity`] over the members of a cluster.
//! - `remote/`: a member on another node, and the service of the local one.
//! - `copies/`: extents with copies on several members: the writer, and the agreement on the end of
//!   an extent.
//! - `node.rs`: implements [`Capacity`] over all disks, `local_member.rs` implements [`Member`].
//!   `home.rs`: the disk that holds an extent; `create.rs`: the creation of an extent;
//!   `placement.rs`: the choice of a disk for it. Work on several disks: `drain.rs`
//!   empties one, `remove.rs` removes an extent from all of them, `backup.rs` copies extents to
//!   another node, `twins.rs` handles an extent that is on two disks.
//! - `disk/`: one disk: start, append, read, seal, free, compaction, scrub, mending, check.
//! - `journal/`: the journal of a disk, where small appends share one sync.
//! - `extent/`: one extent: the bytes of its file, and its state in memory.
//! - `groups/`: in a cluster, which nodes have copies of an extent.
//! - `ids.rs`: the ids of new extents. `damages.rs`: what was found damaged here.
//! - `config.rs`, `metrics.rs`, `health.rs` (whether a disk takes writes) and `units.rs` are used
//!   by all of these.
//!
//! Main path of a write:
//! 1. `node.rs` finds the extent and its disk;
//! 2. `extent/frame.rs` encodes frames;
//! 3. `disk/append.rs` chooses the journal or the extent's file;
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
pub mod cluster;
mod config;
pub mod copies;
mod create;
mod damages;
mod disk;
mod drain;
mod extent;
pub mod groups;
mod health;
mod home;
mod ids;
mod journal;
mod leases;
mod local_frees;
mod local_member;
pub mod member;
mod metrics;
mod node;
mod placement;
pub mod remote;
mod remove;
mod removed;
#[cfg(test)]
mod tests;
mod twins;
mod units;
mod untrusted;

pub use api::{
    AppendRequest, Appended, Audited, Capacity, Durability, Error, ExtentInfo, ExtentKind,
    ExtentState, LogFrame, Payload, ScrubReport,
};
pub use config::{CapacityConfig, CatalogPlace, OpenExtents};
pub use damages::{Damage, Damages};
pub use disk::catalog_sim::SimulatedCatalog;
pub use disk::check::{CheckProgress, CheckReport, CheckedExtent, Problem, check_disk};
pub use disk::format::{FORMAT_FILE, disk_number};
pub use disk::mend::Mended;
pub use disk::open_error::OpenError;
pub use drain::{DiskInfo, Drained};
pub use extent::frame::{FRAME_PAYLOAD_MAX, RawFrame, end_after, merge, part_of_frames};
pub use extent::part::FramePart;
pub use ids::ExtentIds;
pub use journal::replay::JournalError;
pub use leases::{LEASE, LEASE_WAIT, ReadLeases};
pub use local_member::LocalMember;
pub use member::{CopyId, CopyInfo, Encoded, Extension, FramedAppend, Member, OwnedLog};
pub use metrics::{CapacityMetrics, DiskMetrics};
pub use node::CapacityNode;
pub use untrusted::decode_untrusted;
