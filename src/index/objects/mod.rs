//! What rows mean: accounts, containers, blobs, staged blocks and garbage, as changes and reads of
//! rows.
//!
//! 1. `machine.rs` sends each request to its file; `evaluation.rs` is a write being evaluated.
//! 2. `guard.rs` and `encryption.rs` hold it against the current state; `lease.rs` is the life of a
//!    lease; `blob_row.rs`: the row of a blob or snapshot.
//! 3. Writes become row changes in `blob.rs`, `snapshot.rs`, `tier.rs`, `staged.rs`, `commit.rs`,
//!    `append.rs`, `pages.rs` (with `spans.rs`) and `container.rs`; `layout.rs` for block lists,
//!    `garbage.rs` for what they drop.
//! 4. Copies: `share.rs` and `page_copy.rs` mark content so that the rows `copy.rs` writes may name
//!    it too; `copy_jobs.rs` is what pending copies leave behind and how they end. `accessed.rs`
//!    remembers reads.
//! 5. `read.rs`, `page_ranges.rs`, `list.rs` (with `page.rs`, `cursor.rs`) answer reads.
//! 6. `sweep.rs` and `references.rs` (with `walk.rs`) serve reclaim; `tags.rs` keeps the tag index
//!    behind blobs' tags.
//! 7. `keys.rs` and `values.rs` (with `part_fields.rs`) are the only places that know bytes:
//!    `api-spec/keys.md`, `api-spec/rows.md`.
//!
//! Invariants: a location that is not shared (ADR 0009) is referred to by exactly one of: a blob's
//! layout or layer of pages (any number of times), a staged block, a garbage row; it moves between
//! them in one batch (I10, I11). A request is decided by the rows and its `now` alone. No stored
//! byte makes it panic: what cannot be read answers
//! [`crate::index::Error::Corrupt`].
//!
//! Does not: know partitions beyond the range a page is clipped to, check that a blob's container
//! exists (the front end did; what lands in a dead container is purged), read content.

mod accessed;
mod append;
mod blob;
mod blob_row;
mod commit;
mod container;
mod contents;
mod copy;
pub(in crate::index) mod copy_jobs;
mod cursor;
mod encryption;
mod evaluation;
mod garbage;
mod guard;
pub(in crate::index) mod keys;
mod layout;
mod lease;
mod list;
mod machine;
mod page;
mod page_copy;
mod page_ranges;
mod pages;
pub(in crate::index) mod part_fields;
mod read;
mod references;
mod share;
mod snapshot;
pub(in crate::index) mod spans;
mod staged;
pub(in crate::index) mod sweep;
pub(in crate::index) mod tags;
mod tier;
mod untrusted;
pub(in crate::index) mod values;
pub(in crate::index) mod walk;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use machine::Objects;
pub use untrusted::decode_untrusted;
