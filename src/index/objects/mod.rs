//! The meaning of rows: accounts, containers, blobs, staged blocks and garbage. Requests become
//! reads and changes of rows here.
//!
//! 1. `machine.rs` dispatches each request to its file. `evaluation.rs`: the view, the time and the
//!    changes of a write that is evaluated.
//! 2. `guard.rs` and `encryption.rs` check the preconditions of a request against the current
//!    state. `lease.rs`: the effect of a lease action. `blob_row.rs`: the row of a blob, snapshot
//!    or version. `revision.rs` finds the one that a request names. `chain.rs`: the fate of a blob
//!    that is replaced or deleted, and which version is current. `restorable.rs`: soft-deleted
//!    rows; `undelete.rs` restores them.
//! 3. Writes become row changes in `blob.rs`, `delete.rs`, `snapshot.rs`, `tier.rs` (with
//!    `tier_limits.rs`), `staged.rs`, `commit.rs`, `append.rs`, `pages.rs` (with `spans.rs`),
//!    `container.rs`, `container_deletion.rs` and `settings.rs` (of containers).
//!    `new_fields.rs`: the tagged fields of a new blob. `layout.rs`: the layout of block lists.
//!    `garbage.rs`: garbage rows for dropped locations. `upload.rs`: uploads in parts;
//!    `upload_complete.rs` (with `upload_checksum.rs`) makes a blob of one; `part_range.rs` finds
//!    its parts again.
//! 4. Copies: `share.rs` (with `share_frames.rs`) and `page_copy.rs` mark content as shared, so
//!    that the rows that `copy.rs` and `incremental.rs` write may name it too. `copy_jobs.rs`: the
//!    work rows of pending copies, and how these copies end. `accessed.rs` notes the time of a
//!    read.
//! 5. `read.rs`, `blob_parts.rs`, `page_ranges.rs`, `list.rs` (with `list_versions.rs`) and
//!    `upload_list.rs` (with `page.rs`, `cursor.rs`) answer reads.
//! 6. `sweep.rs` and `references.rs` (with `walk.rs`) serve reclaim. `tags.rs`: work rows about
//!    tags, and the entries of the tag index.
//! 7. Only `keys.rs` and `values.rs` (with `contents.rs` and `part_fields.rs`) know the layout of
//!    rows: `api-spec/keys.md`, `api-spec/rows.md`.
//!
//! Invariants: a location that is not shared (ADR 0009) is named by exactly one of: the layout of
//! a blob or of a version, a layer of pages (any number of times), a staged block, a part of an
//! upload, a garbage row. It moves between them in one batch (I10, I11). The rows and the time
//! `now` alone determine the answer to a request. No stored byte causes a panic: a row that cannot
//! be read is answered with [`crate::index::Error::Corrupt`].
//!
//! Not here: partitions, except the range to which a page is clipped; a check that a blob's
//! container exists (the front end checks it, and rows written to a deleted container are purged);
//! reading of content in extents.

mod accessed;
mod append;
mod blob;
mod blob_parts;
mod blob_row;
mod chain;
mod commit;
mod container;
mod container_deletion;
mod contents;
mod copy;
pub(in crate::index) mod copy_jobs;
mod cursor;
mod delete;
mod encryption;
mod evaluation;
mod garbage;
mod guard;
mod incremental;
pub(in crate::index) mod keys;
mod layout;
mod lease;
mod list;
mod list_versions;
mod lock;
mod machine;
mod new_fields;
mod page;
mod page_copy;
mod page_ranges;
mod pages;
pub(in crate::index) mod part_fields;
mod part_range;
mod read;
mod references;
mod repeated;
mod restorable;
mod revision;
pub(in crate::index) mod settings;
mod share;
mod share_frames;
mod snapshot;
pub(in crate::index) mod spans;
mod staged;
pub(in crate::index) mod sweep;
pub(in crate::index) mod tags;
mod tier;
mod tier_limits;
mod undelete;
mod untrusted;
mod upload;
mod upload_checksum;
mod upload_complete;
mod upload_list;
pub(in crate::index) mod values;
pub(in crate::index) mod walk;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use machine::Objects;
pub use untrusted::decode_untrusted;
pub use upload_list::upload_marker_before;
