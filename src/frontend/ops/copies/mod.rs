//! Blobs, blocks and pages from URLs.
//!
//! 1. `frontend::source` finds and authorizes the source.
//! 2. `take.rs` shares its bytes with the destination, or stores them again, encrypted if the
//!    destination is. `pages.rs` does so for page blobs, step by step, and leaves out ranges that
//!    were never written.
//! 3. `blobs.rs` commits the content as a blob; `blocks.rs` as a block, an append or pages.
//!
//! `named.rs` copies named blobs of the same account, `named_part.rs` makes parts of uploads from
//! them. Content that cannot be shared is stored again, encrypted if the destination is.
//!
//! `incremental.rs` copies the changes between two snapshots of a page blob.
//!
//! `frames.rs` makes content from the frames that a range of a source fills.
//!
//! `pending.rs` carries out copies that outlive their request, through the same files.
//!
//! Invariants: shared content is held until the commit that names it was answered; bytes are
//! durable before the commit.

pub(crate) mod blobs;
pub(crate) mod blocks;
mod frames;
mod incremental;
mod named;
mod named_content;
mod named_part;
mod pages;
pub(crate) mod pending;
mod take;

pub(crate) use blobs::{copy, put_blob};
pub(crate) use incremental::copy_increment;
pub(crate) use named::copy_named;
pub(crate) use named_part::copy_part;
pub(crate) use pending::abort;
