//! The journal of one disk: a pre-written ring file. Small appends of all extents become durable
//! with one shared sync.
//!
//! 1. `layout.rs`: superblock, batch, record;
//! 2. `create.rs`: the journal of a new disk;
//! 3. `writer.rs`: group commit; `writer/erase.rs`: erasure of batches that no replay needs;
//! 4. `replay.rs`: reading the batches at a restart.
//!
//! Invariants: one batch is in flight at a time, so a valid batch proves that all earlier ones were
//! durable; a record is queued only when all bytes of its extent below it are durable or queued
//! before it.

#![deny(clippy::indexing_slicing)]

pub(super) mod create;
pub(super) mod layout;
pub(super) mod replay;
pub(super) mod writer;
