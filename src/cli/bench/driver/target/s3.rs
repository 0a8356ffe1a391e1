//! Calls as S3 requests, path-style.

use bytes::Bytes;
use http::Method;

use crate::cli::bench::driver::call::Call;
use crate::cli::bench::driver::signing::sigv4;
use crate::cli::bench::driver::signing::sigv4::SigV4;
use crate::types::Timestamp;

use super::Draft;
use super::Target;
use super::encode;

/// The signed request.
pub(super) fn draft(
    target: &Target,
    key: &SigV4,
    call: &Call,
    now: Timestamp,
) -> Result<Option<Draft>, String> {
    let mut draft = unsigned(target, &key.region, call)?;
    let stamp = sigv4::stamp(now.since_unix().as_secs());
    draft.header("host", &target.authority)?;
    draft.header("x-amz-date", &stamp)?;
    if let Some(token) = &key.token {
        draft.header("x-amz-security-token", token)?;
    }
    let payload = if let Call::Put { body, signed: true, .. } = call {
        sigv4::payload_hash(body)
    } else {
        sigv4::UNSIGNED.to_owned()
    };
    draft.header("x-amz-content-sha256", &payload)?;
    if draft.method == Method::PUT || draft.method == Method::POST {
        let length = draft.body.len().to_string();
        draft.header("content-length", &length)?;
    }
    let query: Vec<(&str, String)> = draft.query.iter().map(|(n, v)| (*n, encode(v))).collect();
    let value = key.authorization(&draft.method, &draft.path, &query, &draft.headers, &stamp);
    draft.header("authorization", &value)?;
    Ok(Some(draft))
}

fn unsigned(target: &Target, region: &str, call: &Call) -> Result<Draft, String> {
    let draft = match call {
        Call::ProbeContainer => Draft::new(Method::HEAD, target.container_path()),
        Call::CreateContainer { .. } => {
            let mut draft = Draft::new(Method::PUT, target.container_path());
            draft.body = placed(region);
            draft
        }
        Call::DeleteContainer => Draft::new(Method::DELETE, target.container_path()),
        Call::Unfinished { prefix } => {
            let mut draft = Draft::new(Method::GET, target.container_path());
            draft.query.push(("uploads", String::new()));
            draft.query.push(("prefix", prefix.clone()));
            draft
        }
        Call::Abort { name, upload } => {
            let mut draft = Draft::new(Method::DELETE, target.blob_path(name));
            draft.query.push(("uploadId", upload.clone()));
            draft
        }
        Call::Put { name, body, .. } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.body = body.clone();
            draft
        }
        Call::Get { name, from, expect } => {
            let mut draft = Draft::new(Method::GET, target.blob_path(name));
            if let Some(from) = from {
                draft.header("range", &format!("bytes={from}-{}", from + expect.len() - 1))?;
            }
            draft
        }
        Call::Head { name } => Draft::new(Method::HEAD, target.blob_path(name)),
        Call::Delete { name } => Draft::new(Method::DELETE, target.blob_path(name)),
        Call::List { prefix, limit, marker } => {
            let mut draft = Draft::new(Method::GET, target.container_path());
            draft.query.push(("list-type", "2".to_owned()));
            draft.query.push(("prefix", prefix.clone()));
            draft.query.push(("max-keys", limit.to_string()));
            if let Some(marker) = marker {
                draft.query.push(("continuation-token", marker.clone()));
            }
            draft
        }
        Call::StartUpload { name } => {
            let mut draft = Draft::new(Method::POST, target.blob_path(name));
            draft.query.push(("uploads", String::new()));
            draft
        }
        Call::Stage { name, upload, number, body } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.query.push(("partNumber", number.to_string()));
            draft.query.push(("uploadId", upload.clone()));
            draft.body = body.clone();
            draft
        }
        Call::Commit { name, upload, tags } => {
            let mut draft = Draft::new(Method::POST, target.blob_path(name));
            draft.query.push(("uploadId", upload.clone()));
            draft.body = Bytes::from(complete(tags));
            draft
        }
    };
    Ok(draft)
}

/// The document of a new bucket. Buckets of the first region are made without one.
fn placed(region: &str) -> Bytes {
    if region == "us-east-1" {
        return Bytes::new();
    }
    Bytes::from(format!(
        "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint>\
         </CreateBucketConfiguration>"
    ))
}

fn complete(tags: &[String]) -> String {
    let parts: String = (1u32..)
        .zip(tags)
        .map(|(number, tag)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        })
        .collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}
