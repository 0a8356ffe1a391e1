//! The canonical form of a request, which version 4 signs.

use std::fmt::Write;

use http::HeaderMap;
use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::percent_decode_str;
use percent_encoding::percent_encode;

use crate::auth::s3::request::SignedS3Request;

/// All but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// As [`ENCODED`], in paths.
const ENCODED_IN_PATH: &AsciiSet = &ENCODED.remove(b'/');

/// The canonical request. `names` are the signed headers, as the client lists them; `payload` is
/// the line about the body; the query leaves out the parameter `without`.
pub(super) fn canonical_request(
    request: &SignedS3Request<'_>,
    names: &str,
    payload: &str,
    without: Option<&str>,
) -> String {
    let mut out = String::with_capacity(512);
    let path = percent_decode_str(request.path).collect::<Vec<u8>>();
    let path = percent_encode(&path, ENCODED_IN_PATH);
    let query = query(request.query.unwrap_or(""), without);
    write!(out, "{}\n{path}\n{query}\n", request.method).expect("a string takes everything");
    for name in names.split(';') {
        out.push_str(name);
        out.push(':');
        header(&mut out, request, name);
        out.push('\n');
    }
    write!(out, "\n{names}\n{payload}").expect("a string takes everything");
    out
}

/// Parameters in the order of their encoded names and values.
fn query(raw: &str, without: Option<&str>) -> String {
    let mut pairs: Vec<(String, String)> = raw
        .split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .filter(|(name, _)| Some(*name) != without)
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Encoded anew: clients differ in what they leave as it is. A plus is a space.
fn encoded(raw: &str) -> String {
    let plain = raw.replace('+', " ");
    let bytes = percent_decode_str(&plain).collect::<Vec<u8>>();
    percent_encode(&bytes, ENCODED).to_string()
}

/// The values of a header, separated by commas; runs of spaces are one space.
fn header(out: &mut String, request: &SignedS3Request<'_>, name: &str) {
    if name == "host" {
        out.push_str(request.host);
        return;
    }
    for (number, value) in values(request.headers, name).enumerate() {
        if number > 0 {
            out.push(',');
        }
        let value = String::from_utf8_lossy(value);
        for (number, word) in value.split([' ', '\t']).filter(|word| !word.is_empty()).enumerate() {
            if number > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().map(http::HeaderValue::as_bytes)
}
