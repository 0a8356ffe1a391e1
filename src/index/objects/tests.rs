//! The machine over rows in memory.

mod blobs;
mod support;
