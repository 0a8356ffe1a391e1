//! Parquet: pages, their compression, and the values of columns without repetition.
//!
//! `parquet` reads the metadata and decodes the values of pages. Its own readers take whole pages
//! out of their compression without a bound, so that is done here.

pub(crate) mod codec;
pub(crate) mod header;
pub(crate) mod leaf;
pub(crate) mod pages;
pub(crate) mod thrift;
pub(crate) mod zstd;

use crate::query::request::Fault;
use crate::query::trouble::PARSE_ERROR;

/// The fault of a malformed file.
pub(crate) fn malformed(text: &dyn std::fmt::Display) -> Fault {
    Fault::fatal(PARSE_ERROR, format!("Malformed Parquet: {text}."), 0)
}
