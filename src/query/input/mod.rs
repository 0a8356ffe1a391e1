//! Formats of the blob.

pub(crate) mod delimited;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod pieces;
pub(crate) mod walk;
pub(crate) mod window;
