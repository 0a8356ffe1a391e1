//! The string that version 2 signs.

use std::collections::BTreeMap;
use std::fmt::Write;

use percent_encoding::percent_decode_str;

use crate::auth::s3::request::SignedS3Request;

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

/// The string to sign; `expires` is that of a presigned URL, in the place of the date.
pub(super) fn string_to_sign(request: &SignedS3Request<'_>, expires: Option<&str>) -> String {
    let value = |name: &str| {
        let value = request.headers.get(name).map(http::HeaderValue::as_bytes);
        String::from_utf8_lossy(value.unwrap_or_default()).trim().to_owned()
    };
    let date = match expires {
        Some(expires) => expires.to_owned(),
        None if request.headers.contains_key("x-amz-date") => String::new(),
        None => value("date"),
    };
    let (md5, kind) = (value("content-md5"), value("content-type"));
    let mut out = format!("{}\n{md5}\n{kind}\n{date}\n", request.method);
    amz_headers(&mut out, request);
    if let Some(bucket) = request.bucket {
        out.push('/');
        out.push_str(bucket);
    }
    out.push_str(request.path);
    parameters(&mut out, request.query.unwrap_or(""));
    out
}

/// Headers of S3 in the order of their names; values of one name are joined by commas.
fn amz_headers(out: &mut String, request: &SignedS3Request<'_>) {
    let mut headers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in request.headers {
        if name.as_str().starts_with("x-amz-") {
            let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
            headers.entry(name.as_str()).or_default().push(value);
        }
    }
    for (name, values) in headers {
        writeln!(out, "{name}:{}", values.join(",")).expect("a string takes everything");
    }
}

fn parameters(out: &mut String, query: &str) {
    let mut signed: Vec<(&str, Option<String>)> = query
        .split('&')
        .map(|piece| match piece.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (piece, None),
        })
        .filter(|(name, _)| SIGNED_PARAMETERS.contains(name))
        .map(|(name, value)| {
            let decoded = |raw: &str| {
                percent_decode_str(&raw.replace('+', " ")).decode_utf8_lossy().into_owned()
            };
            (name, value.filter(|value| !value.is_empty()).map(decoded))
        })
        .collect();
    signed.sort_unstable();
    for (number, (name, value)) in signed.into_iter().enumerate() {
        out.push(if number == 0 { '?' } else { '&' });
        out.push_str(name);
        if let Some(value) = value {
            out.push('=');
            out.push_str(&value);
        }
    }
}
