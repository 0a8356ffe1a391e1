//! The request headers that every answer echoes.

use std::fmt;

use http::HeaderMap;
use http::HeaderValue;
use http::request::Parts;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query;

/// A service version, `YYYY-MM-DD`. Any date is served: newer than known means at the highest known
/// behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceVersion {
    year: u16,
    month: u8,
    day: u8,
}

impl ServiceVersion {
    /// The version of a request without `x-ms-version`: the newest, so that plain clients meet no
    /// old limits.
    pub const DEFAULT: Self = Self::new(2026, 10, 6);

    /// A version by its parts, of four, two and two digits.
    #[must_use]
    pub const fn new(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day }
    }

    /// Reads `YYYY-MM-DD`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u16>().ok())?
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let plausible = year >= 2009 && (1..=12).contains(&month) && (1..=31).contains(&day);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        plausible.then_some(Self { year, month, day })
    }
}

impl fmt::Display for ServiceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every answer has it. Formatting three padded numbers takes nine times as long.
        let digit = |number: u16| b'0' + u8::try_from(number % 10).unwrap_or_default();
        let (year, month, day) = (self.year, u16::from(self.month), u16::from(self.day));
        let [a, b, c, d] = [year / 1000, year / 100, year / 10, year].map(digit);
        let [e, g, h, i] = [month / 10, month, day / 10, day].map(digit);
        let text = [a, b, c, d, b'-', e, g, b'-', h, i];
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Bytes of a client request id the service takes.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// The parts of a head that no operation owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// `x-ms-version`, else the version in the URL.
    pub version: ServiceVersion,
    /// `x-ms-client-request-id`, at most 1 KiB.
    pub client_request_id: Option<HeaderValue>,
}

impl Context {
    /// Reads the head.
    ///
    /// # Errors
    /// `InvalidHeaderValue` for a malformed version or a client request id above 1 KiB;
    /// `InvalidQueryParameterValue` for a malformed `api-version`.
    pub fn from_head(head: &Parts) -> Result<Self, Refusal> {
        let version = match headers::text(&head.headers, &names::VERSION)? {
            None => from_query(head)?.unwrap_or(ServiceVersion::DEFAULT),
            Some(text) => {
                ServiceVersion::parse(text).ok_or_else(|| headers::invalid("x-ms-version", text))?
            }
        };
        let client_request_id = client_request_id(&head.headers);
        if client_request_id.is_none() && head.headers.contains_key(&names::CLIENT_REQUEST_ID) {
            return Err(Refusal::new(Reason::InvalidHeaderValue)
                .detail(Detail::HeaderName, "x-ms-client-request-id"));
        }
        Ok(Self { version, client_request_id })
    }

    /// Reads the echoed headers from a head that may be malformed.
    pub(super) fn lenient(head: &Parts) -> Self {
        let version = head.headers.get(&names::VERSION).and_then(|v| v.to_str().ok());
        Self {
            version: version
                .and_then(ServiceVersion::parse)
                .or_else(|| from_query(head).ok().flatten())
                .unwrap_or(ServiceVersion::DEFAULT),
            client_request_id: client_request_id(&head.headers),
        }
    }
}

/// The version a URL asks for: `api-version`, else that of its shared access signature. A
/// signature's own version that cannot be read is left to the verification.
fn from_query(head: &Parts) -> Result<Option<ServiceVersion>, Refusal> {
    let value = |wanted: &str| {
        let mut pairs = head.uri.query().unwrap_or("").split('&').filter_map(|p| p.split_once('='));
        pairs
            .find(|(name, value)| name.eq_ignore_ascii_case(wanted) && !value.is_empty())
            .map(|(_, v)| v)
    };
    match value("api-version") {
        Some(text) => {
            let refused = || query::invalid("api-version", text);
            ServiceVersion::parse(text).map(Some).ok_or_else(refused)
        }
        None => Ok(value("sv").and_then(ServiceVersion::parse)),
    }
}

fn client_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    headers
        .get(&names::CLIENT_REQUEST_ID)
        .filter(|value| value.len() <= CLIENT_REQUEST_ID_BYTES_MAX)
        .cloned()
}
