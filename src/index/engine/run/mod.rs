//! Sorted runs: immutable files of rows, one extent each. Layout: `api-spec/run.md`.
//!
//! 1. `block.rs`: rows with shared prefixes, compressed; `filter.rs`: which keys are surely absent;
//!    `footer.rs`.
//! 2. `writer.rs`: a stream of rows in key order becomes an extent.
//! 3. `reader.rs`: a run opened: index and filter in memory, blocks through `cache.rs`.

pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
