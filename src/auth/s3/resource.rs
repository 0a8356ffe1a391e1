//! The string that version 2 signs.

use std::collections::BTreeMap;

use crate::auth::s3::request::SignedS3Request;
use crate::auth::s3::request::decoded;
use crate::auth::s3::request::parameter;

/// The parameter of a session token, with the name of its header.
const SESSION_TOKEN: &str = "x-amz-security-token";

/// Parameters that are part of the resource. The others are not signed.
const SIGNED_PARAMETERS: [&str; 41] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "partNumber",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "retention",
    "select",
    "select-type",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// The string to sign; `expires` is that of a presigned URL, in the place of the date. Values of
/// headers are bytes, in whatever encoding the client sent them.
pub(super) fn string_to_sign(request: &SignedS3Request<'_>, expires: Option<&str>) -> Vec<u8> {
    let value = |name: &str| {
        request.headers.get(name).map_or(&b""[..], |value| value.as_bytes().trim_ascii())
    };
    let date = match expires {
        Some(expires) => expires.as_bytes(),
        None if request.headers.contains_key("x-amz-date") => b"",
        None => value("date"),
    };
    let method = request.method.as_str().as_bytes();
    let mut out = Vec::with_capacity(256);
    for line in [method, value("content-md5"), value("content-type"), date] {
        out.extend(line);
        out.push(b'\n');
    }
    // Clients sign the session token of a presigned URL as the header that it stands for.
    let token = expires.and_then(|_| parameter(request, SESSION_TOKEN));
    amz_headers(&mut out, request, token.as_deref());
    if let Some(bucket) = request.bucket {
        out.push(b'/');
        out.extend(bucket.bytes());
    }
    out.extend(request.path.bytes());
    out.extend(parameters(request.query.unwrap_or("")).bytes());
    out
}

/// Headers of S3 in the order of their names; values of one name are joined by commas.
fn amz_headers(out: &mut Vec<u8>, request: &SignedS3Request<'_>, token: Option<&str>) {
    let mut headers: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
    if let Some(token) = token {
        headers.entry(SESSION_TOKEN).or_default().push(token.as_bytes());
    }
    for (name, value) in request.headers {
        if name.as_str().starts_with("x-amz-") {
            headers.entry(name.as_str()).or_default().push(value.as_bytes().trim_ascii());
        }
    }
    for (name, values) in headers {
        out.extend(name.bytes());
        out.push(b':');
        out.extend(values.join(&b','));
        out.push(b'\n');
    }
}

/// Names are decoded before they are looked up: an escaped name chooses the operation as a plain
/// one does, so it is signed as one.
fn parameters(query: &str) -> String {
    let mut signed: Vec<(String, Option<String>)> = query
        .split('&')
        .map(|piece| match piece.split_once('=') {
            Some((name, value)) => (decoded(name), Some(value)),
            None => (decoded(piece), None),
        })
        .filter(|(name, _)| SIGNED_PARAMETERS.contains(&name.as_str()))
        .map(|(name, value)| (name, value.filter(|value| !value.is_empty()).map(decoded)))
        .collect();
    signed.sort_unstable();
    let mut out = String::new();
    for (name, value) in signed {
        out.push(if out.is_empty() { '?' } else { '&' });
        out.push_str(&name);
        if let Some(value) = value {
            out.push('=');
            out.push_str(&value);
        }
    }
    out
}
