//! The canonical form of a request, which version 4 signs.

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

/// The canonical request. Values of headers are bytes, in whatever encoding the client sent them.
/// `names` are the signed headers, as the client lists them; `payload` is
/// the line about the body; the query leaves out the parameter `without`.
pub(super) fn canonical_request(
    request: &SignedS3Request<'_>,
    names: &str,
    payload: &str,
    without: Option<&str>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let path = percent_decode_str(request.path).collect::<Vec<u8>>();
    let path = percent_encode(&path, ENCODED_IN_PATH);
    let query = query(request.query.unwrap_or(""), without);
    out.extend(format!("{}\n{path}\n{query}\n", request.method).bytes());
    for name in names.split(';') {
        out.extend(name.bytes());
        out.push(b':');
        header(&mut out, request, name);
        out.push(b'\n');
    }
    out.extend(format!("\n{names}\n{payload}").bytes());
    out
}

/// Parameters in the order of their encoded names and values.
fn query(raw: &str, without: Option<&str>) -> String {
    let mut pairs: Vec<(String, String)> = raw
        .split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .filter(|(name, _)| Some(name.as_str()) != without)
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Encoded again: clients differ in the characters that they leave unescaped. A plus is a space.
fn encoded(raw: &str) -> String {
    let plain = raw.replace('+', " ");
    let bytes = percent_decode_str(&plain).collect::<Vec<u8>>();
    percent_encode(&bytes, ENCODED).to_string()
}

/// The values of a header, separated by commas; runs of spaces are one space.
fn header(out: &mut Vec<u8>, request: &SignedS3Request<'_>, name: &str) {
    if name == "host" {
        out.extend(request.host.bytes());
        return;
    }
    for (number, value) in values(request.headers, name).enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let words = value.split(|byte| matches!(byte, b' ' | b'\t'));
        for (number, word) in words.filter(|word| !word.is_empty()).enumerate() {
            if number > 0 {
                out.push(b' ');
            }
            out.extend(word);
        }
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().map(http::HeaderValue::as_bytes)
}
