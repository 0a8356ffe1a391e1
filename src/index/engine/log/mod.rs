//! The log of a partition: records in the frames of a chain of extents.
//!
//! 1. `record.rs`, `manifest.rs`: the layouts of records.
//! 2. `reader.rs`: reads the records of one extent up to its valid end.
//! 3. `writer.rs`: appends to the open extent, and rolls to the next one.
//!
//! I2: only one owner can extend a log, because the descriptor is changed by compare-and-swap and
//! because extents refuse lower epochs. The first record of each extent has a link that says where
//! the extent before it ends. So the roll after a failed append discards bytes that the append may
//! have written.

pub(crate) mod manifest;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
