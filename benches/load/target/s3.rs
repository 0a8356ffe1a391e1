//! Calls as S3 requests, path-style.

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::Method;

use super::Draft;
use super::Target;
use super::encode;
use crate::call::Call;
use crate::signing::sigv4;
use crate::signing::sigv4::SigV4;

/// The signed request.
pub(super) fn draft(target: &Target, key: &SigV4, call: &Call) -> Result<Option<Draft>, String> {
    let mut draft = unsigned(target, call)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
    let stamp = sigv4::stamp(now.as_secs());
    draft.header("host", &target.authority)?;
    draft.header("x-amz-date", &stamp)?;
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

fn unsigned(target: &Target, call: &Call) -> Result<Draft, String> {
    let draft = match call {
        Call::CreateContainer => Draft::new(Method::PUT, target.container_path()),
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

fn complete(tags: &[String]) -> String {
    let parts: String = (1u32..)
        .zip(tags)
        .map(|(number, tag)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        })
        .collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}
