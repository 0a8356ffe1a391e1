//! Strings-to-sign, from the raw head of a request.
//!
//! Source: Storage REST "Authorize with Shared Key".

use std::cmp::Ordering;

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::header::AsHeaderName;
use http::header::CONTENT_ENCODING;
use http::header::CONTENT_LANGUAGE;
use http::header::CONTENT_LENGTH;
use http::header::CONTENT_TYPE;
use http::header::DATE;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;
use http::header::RANGE;
use percent_encoding::percent_decode_str;

/// The parts of a request that a signature covers, as received.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, still percent-encoded.
    pub path: &'a str,
    /// The query without its `?`, still percent-encoded.
    pub query: Option<&'a str>,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The account the URL names, without `-secondary`.
    pub account: &'a str,
    /// Whether the URL names the secondary.
    pub secondary: bool,
}

/// The two forms of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `SharedKey`: all standard headers and the whole query.
    Full,
    /// `SharedKeyLite`: four standard headers and `comp`.
    Lite,
}

/// Differences between clients in what they sign. The service accepts all variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// `x-ms-*` headers in the culture order of .NET, not in byte order.
    pub(super) culture_order: bool,
    /// Runs of white space in `x-ms-*` values replaced by one space.
    pub(super) folded: bool,
    /// The path without `-secondary` after the account (path-style only).
    pub(super) primary_path: bool,
}

/// Version from which an empty body signs an empty `Content-Length`, not `0`.
const ZERO_LENGTH_EMPTY_SINCE: &str = "2015-02-21";

/// Standard headers of the full form before the date, in order; `content-length` is special.
static FULL_BEFORE_DATE: [HeaderName; 5] =
    [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_MD5, CONTENT_TYPE];
/// Standard headers of the full form after the date, in order.
static FULL_AFTER_DATE: [HeaderName; 5] =
    [IF_MODIFIED_SINCE, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE];
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub(super) const MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");

/// The string-to-sign of one variant.
pub(super) fn string_to_sign(
    request: &SignedRequest<'_>,
    scheme: Scheme,
    reading: Reading,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    line(&mut out, request.method.as_str().as_bytes());
    match scheme {
        Scheme::Full => {
            for name in &FULL_BEFORE_DATE {
                line(&mut out, standard(request.headers, name));
            }
            line(&mut out, date(request.headers));
            for name in &FULL_AFTER_DATE {
                line(&mut out, value(request.headers, name));
            }
        }
        Scheme::Lite => {
            line(&mut out, value(request.headers, CONTENT_MD5));
            line(&mut out, value(request.headers, CONTENT_TYPE));
            line(&mut out, date(request.headers));
        }
    }
    service_headers(&mut out, request.headers, reading);
    resource(&mut out, request, reading);
    match scheme {
        Scheme::Full => query_lines(&mut out, request.query),
        Scheme::Lite => comp_suffix(&mut out, request.query),
    }
    out
}

fn line(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.push(b'\n');
}

fn value(headers: &HeaderMap, name: impl AsHeaderName) -> &[u8] {
    headers.get(name).map_or(b"", HeaderValue::as_bytes)
}

fn standard<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a [u8] {
    let bytes = value(headers, name);
    if *name == CONTENT_LENGTH && bytes == b"0" {
        let version = value(headers, "x-ms-version");
        let old = !version.is_empty() && version < ZERO_LENGTH_EMPTY_SINCE.as_bytes();
        return if old { bytes } else { b"" };
    }
    bytes
}

/// Whether `x-ms-date` is sent. Then `Date` is not signed.
fn date(headers: &HeaderMap) -> &[u8] {
    if headers.contains_key(MS_DATE) { b"" } else { value(headers, DATE) }
}

/// `name:value` of each `x-ms-*` header; values of a repeated name are joined by commas.
fn service_headers(out: &mut Vec<u8>, headers: &HeaderMap, reading: Reading) {
    let mut names: Vec<&HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-ms-")).collect();
    if reading.culture_order {
        names.sort_unstable_by(|a, b| culture_order(a.as_str(), b.as_str()));
    } else {
        names.sort_unstable_by_key(|name| name.as_str());
    }
    for name in names {
        out.extend_from_slice(name.as_str().as_bytes());
        out.push(b':');
        for (i, value) in headers.get_all(name).iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_value(out, value.as_bytes(), reading.folded);
        }
        out.push(b'\n');
    }
}

fn push_value(out: &mut Vec<u8>, bytes: &[u8], folded: bool) {
    let trimmed = bytes.trim_ascii();
    if !folded {
        out.extend_from_slice(trimmed);
        return;
    }
    let mut previous_space = false;
    for &byte in trimmed {
        let space = byte == b' ' || byte == b'\t';
        if !(space && previous_space) {
            out.push(if space { b' ' } else { byte });
        }
        previous_space = space;
    }
}

/// The culture order of .NET: punctuation, digits, letters; hyphens and apostrophes are ignored
/// first. Of two names that are equal otherwise, the one with the earlier hyphen comes last.
fn culture_order(a: &str, b: &str) -> Ordering {
    let weights = |name: &str| name.bytes().filter_map(weight).collect::<Vec<_>>();
    weights(a).cmp(&weights(b)).then_with(|| hyphen_order(a.as_bytes(), b.as_bytes()))
}

fn hyphen_order(a: &[u8], b: &[u8]) -> Ordering {
    let differs = a.iter().zip(b).position(|(x, y)| x != y);
    let at = differs.unwrap_or(a.len().min(b.len()));
    let hyphen = |name: &[u8]| name.get(at) == Some(&b'-');
    hyphen(a).cmp(&hyphen(b))
}

/// Places in the order; `None` does not count. Only bytes legal in lower-case header names occur.
fn weight(byte: u8) -> Option<usize> {
    const ORDER: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";
    ORDER.iter().position(|&b| b == byte)
}

/// `/account` and the path as received.
fn resource(out: &mut Vec<u8>, request: &SignedRequest<'_>, reading: Reading) {
    out.push(b'/');
    out.extend_from_slice(request.account.as_bytes());
    match primary_path(request).filter(|_| reading.primary_path) {
        Some(rest) => {
            out.push(b'/');
            out.extend_from_slice(request.account.as_bytes());
            out.extend_from_slice(rest.as_bytes());
        }
        None => out.extend_from_slice(request.path.as_bytes()),
    }
}

/// The rest of a path that starts with `/ACCOUNT-secondary`.
pub(super) fn primary_path<'a>(request: &SignedRequest<'a>) -> Option<&'a str> {
    if !request.secondary {
        return None;
    }
    let rest = request.path.strip_prefix('/')?.strip_prefix(request.account)?;
    rest.strip_prefix("-secondary").filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `\nname:value` of each parameter, decoded, names in lower case and sorted, repeated values
/// sorted and joined.
fn query_lines(out: &mut Vec<u8>, query: Option<&str>) {
    let mut pairs = parameters(query);
    pairs.sort_unstable();
    let mut previous: Option<&[u8]> = None;
    for Parameter { name, value } in &pairs {
        if previous == Some(name.as_slice()) {
            out.push(b',');
        } else {
            out.push(b'\n');
            out.extend_from_slice(name);
            out.push(b':');
        }
        out.extend_from_slice(value);
        previous = Some(name.as_slice());
    }
}

fn comp_suffix(out: &mut Vec<u8>, query: Option<&str>) {
    if let Some(comp) = parameters(query).into_iter().find(|one| one.name == b"comp") {
        out.extend_from_slice(b"?comp=");
        out.extend_from_slice(&comp.value);
    }
}

/// A parameter of a query, decoded, its name in lower case. The order is that of names, then
/// values.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parameter {
    name: Vec<u8>,
    value: Vec<u8>,
}

fn parameters(query: Option<&str>) -> Vec<Parameter> {
    let pieces = query.unwrap_or("").split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Parameter { name: decode(name).to_ascii_lowercase(), value: decode(value) }
        })
        .collect()
}

/// Percent-decoding with `+` as a space.
fn decode(text: &str) -> Vec<u8> {
    if text.contains('+') {
        percent_decode_str(&text.replace('+', " ")).collect()
    } else {
        percent_decode_str(text).collect()
    }
}
