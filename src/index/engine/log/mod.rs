//! A partition's log: records over the frames of a chain of extents.
//!
//! 1. `record.rs`, `manifest.rs`: the bytes.
//! 2. `reader.rs`: records of one extent, up to where it validly ends.
//! 3. `writer.rs`: the open extent, appending, rolling to the next one.
//!
//! I2: the descriptor's compare-and-swap and the extents' epochs let only one owner extend a log; a
//! link in the first record of each extent says where the one before ends, so a failed append is
//! cut off for good by the roll after it.

pub(crate) mod manifest;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
