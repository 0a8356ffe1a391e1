//! Heads of responses, header by header.

use std::fmt;
use std::fmt::Write as _;

use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderName;
use http::HeaderValue;
use http::Response;
use http::StatusCode;

/// Bytes that the values of most heads take together.
const VALUES_BYTES: usize = 512;
/// Headers of most heads.
const HEADERS: usize = 24;

/// A response head being written. Values that are made for it lie in one buffer: an allocation for
/// each would cost more than making them.
pub(in crate::protocol) struct Head {
    response: Response<Bytes>,
    values: BytesMut,
}

impl Head {
    /// A head with this status and no header.
    pub(in crate::protocol) fn new(status: u16) -> Self {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().reserve(HEADERS);
        Self { response, values: BytesMut::with_capacity(VALUES_BYTES) }
    }

    /// Adds headers to an answer.
    pub(in crate::protocol) fn of(response: Response<Bytes>) -> Self {
        Self { response, values: BytesMut::new() }
    }

    /// Sets a header whose value is always the same.
    pub(in crate::protocol) fn fixed(self, name: &'static str, value: &'static str) -> Self {
        self.insert(name, HeaderValue::from_static(value))
    }

    /// Sets a header; a value that no header can hold is left out.
    pub(in crate::protocol) fn set(mut self, name: &'static str, value: &str) -> Self {
        self.values.extend_from_slice(value.as_bytes());
        let value = self.taken();
        self.insert_some(HeaderName::from_static(name), value)
    }

    /// Sets a header to what `value` displays.
    pub(in crate::protocol) fn shown(
        mut self,
        name: &'static str,
        value: impl fmt::Display,
    ) -> Self {
        write!(self.values, "{value}").expect("writing to memory does not fail");
        let value = self.taken();
        self.insert_some(HeaderName::from_static(name), value)
    }

    /// Sets a header whose name is known only now to bytes; what cannot be a header is left out.
    pub(in crate::protocol) fn named(mut self, name: &str, value: &[u8]) -> Self {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { return self };
        self.values.extend_from_slice(value);
        let value = self.taken();
        self.insert_some(name, value)
    }

    /// The value that was written last.
    fn taken(&mut self) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(self.values.split().freeze()).ok()
    }

    /// Sets a header to a value that was made before.
    pub(in crate::protocol) fn insert(self, name: &'static str, value: HeaderValue) -> Self {
        self.insert_some(HeaderName::from_static(name), Some(value))
    }

    fn insert_some(mut self, name: HeaderName, value: Option<HeaderValue>) -> Self {
        if let Some(value) = value {
            self.response.headers_mut().insert(name, value);
        }
        self
    }

    /// Sets a header if there is a value.
    pub(in crate::protocol) fn optional(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// An XML document as the body.
    pub(in crate::protocol) fn xml(self, body: String) -> Response<Bytes> {
        let length = body.len();
        let mut response =
            self.fixed("content-type", "application/xml").shown("content-length", length).response;
        *response.body_mut() = body.into();
        response
    }

    /// No body, which the head says.
    pub(in crate::protocol) fn empty(self) -> Response<Bytes> {
        self.fixed("content-length", "0").response
    }

    /// The body is none, or the caller's.
    pub(in crate::protocol) fn bodiless(self) -> Response<Bytes> {
        self.response
    }
}
