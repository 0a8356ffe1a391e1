//! A request, as the parsers of operations see it.

use http::HeaderMap;
use http::Method;

use crate::protocol::azure::ServiceVersion;
use crate::protocol::wire::query::Query;

/// A request, as the parsers of its resource read it.
pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) query: &'a Query,
    pub(super) version: ServiceVersion,
}
