//! Sorted runs: immutable files of rows. Each is an extent. Layout: `api-spec/run.md`.
//!
//! 1. `block.rs`: compressed rows in key order. `filter.rs`: a Bloom filter of the keys.
//!    `footer.rs`: where index and filter are, and a summary.
//! 2. `writer.rs`: writes rows in key order to an extent.
//! 3. `reader.rs`: an open run. It holds index and filter in memory, and reads blocks through
//!    `cache.rs`.

pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
