//! Headers of copies.

use http::HeaderMap;

use crate::protocol::azure::names;

/// The header that makes a request take its bytes from a URL.
pub(super) const SOURCE: &str = names::COPY_SOURCE_NAME;
/// Whether the copy of an append blob is sealed.
pub(super) const SEAL: &str = "x-ms-seal-blob";

/// Whether the request takes its bytes from a URL.
pub(super) fn has_source(all: &HeaderMap) -> bool {
    all.contains_key(&names::COPY_SOURCE)
}

/// Whether the request is a Copy Blob, synchronous or not.
pub(super) fn is_copy_blob(comp: Option<&str>, all: &HeaderMap) -> bool {
    comp.is_none() && has_source(all) && !all.contains_key(&names::BLOB_TYPE)
}
