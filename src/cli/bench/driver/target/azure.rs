//! Calls as Azure Blob requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use http::Method;

use crate::cli::bench::driver::call::Call;
use crate::cli::bench::driver::signing::shared_key::SharedKey;
use crate::types::Timestamp;

use super::Draft;
use super::Target;

/// The version of all requests: old enough for every server that is compared.
const VERSION: &str = "2023-11-03";

/// The id of block `number`: eight digits in base64, so that all ids are of one length.
fn block_id(number: u32) -> String {
    STANDARD.encode(format!("{number:08}"))
}

/// The request to sign; `None` for `StartUpload`, because uploads of blocks need no start.
pub(super) fn draft(
    target: &Target,
    key: Option<&SharedKey>,
    call: &Call,
    now: Timestamp,
) -> Result<Option<Draft>, String> {
    let Some(mut draft) = unsigned(target, call)? else { return Ok(None) };
    draft.header("host", &target.authority)?;
    draft.header("x-ms-version", VERSION)?;
    draft.header("x-ms-date", &httpdate::fmt_http_date(now.to_system_time()))?;
    if draft.method == Method::PUT {
        let length = draft.body.len().to_string();
        draft.header("content-length", &length)?;
    }
    if let Some(key) = key {
        let value = key.authorization(&draft.method, &draft.path, &draft.query, &draft.headers);
        draft.header("authorization", &value)?;
    }
    Ok(Some(draft))
}

fn of_container(method: Method, target: &Target) -> Draft {
    let mut draft = Draft::new(method, target.container_path());
    draft.query.push(("restype", "container".to_owned()));
    draft
}

fn unsigned(target: &Target, call: &Call) -> Result<Option<Draft>, String> {
    let draft = match call {
        Call::ProbeContainer => of_container(Method::HEAD, target),
        Call::CreateContainer { .. } => of_container(Method::PUT, target),
        Call::DeleteContainer => of_container(Method::DELETE, target),
        Call::Unfinished { prefix } => {
            let mut draft = of_container(Method::GET, target);
            draft.query.push(("comp", "list".to_owned()));
            draft.query.push(("include", "uncommittedblobs".to_owned()));
            draft.query.push(("prefix", prefix.clone()));
            draft
        }
        // The staged blocks are dropped when the blob is written, which is then deleted.
        Call::Abort { name, .. } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.header("x-ms-blob-type", "BlockBlob")?;
            draft
        }
        Call::Put { name, body, .. } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.header("x-ms-blob-type", "BlockBlob")?;
            draft.body = body.clone();
            draft
        }
        Call::Get { name, from, expect } => {
            let mut draft = Draft::new(Method::GET, target.blob_path(name));
            if let Some(from) = from {
                let last = from + expect.len() - 1;
                draft.header("x-ms-range", &format!("bytes={from}-{last}"))?;
            }
            draft
        }
        Call::Head { name } => Draft::new(Method::HEAD, target.blob_path(name)),
        Call::Delete { name } => Draft::new(Method::DELETE, target.blob_path(name)),
        Call::List { prefix, limit, marker } => {
            let mut draft = of_container(Method::GET, target);
            draft.query.push(("comp", "list".to_owned()));
            draft.query.push(("prefix", prefix.clone()));
            draft.query.push(("maxresults", limit.to_string()));
            if let Some(marker) = marker {
                draft.query.push(("marker", marker.clone()));
            }
            draft
        }
        Call::StartUpload { .. } => return Ok(None),
        Call::Stage { name, number, body, .. } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.query.push(("comp", "block".to_owned()));
            draft.query.push(("blockid", block_id(*number)));
            if target.crc64 {
                let sum = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, body);
                draft.header("x-ms-content-crc64", &STANDARD.encode(sum.to_le_bytes()))?;
            }
            draft.body = body.clone();
            draft
        }
        Call::Commit { name, tags, .. } => {
            let mut draft = Draft::new(Method::PUT, target.blob_path(name));
            draft.query.push(("comp", "blocklist".to_owned()));
            let ids: String = (1u32..)
                .zip(tags)
                .map(|(n, _)| format!("<Latest>{}</Latest>", block_id(n)))
                .collect();
            let xml =
                format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{ids}</BlockList>");
            draft.body = Bytes::from(xml);
            draft
        }
    };
    Ok(Some(draft))
}
