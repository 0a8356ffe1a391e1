//! Lists of objects.

use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::request::Request;
use crate::protocol::wire::query;

/// Keys of one page at most.
const KEYS_MAX: u32 = 1_000;

/// `ListObjects`.
pub(super) fn objects(request: &Request<'_>) -> Result<Parsed, Refusal> {
    list(request, "marker")
}

/// `ListObjectsV2`.
pub(super) fn objects_v2(request: &Request<'_>) -> Result<Parsed, Refusal> {
    list(request, "continuation-token")
}

fn list(request: &Request<'_>, marker: &str) -> Result<Parsed, Refusal> {
    let owned = |name: &str| Ok::<_, Refusal>(request.query.get(name)?.map(str::to_owned));
    let list = ListBlobs {
        container: request.bucket()?,
        prefix: owned("prefix")?,
        delimiter: owned("delimiter")?,
        marker: owned(marker)?,
        start_from: None,
        max_results: Some(max_keys(request)?),
        metadata: false,
        uncommitted: false,
        snapshots: false,
        tags: false,
        copy: false,
        content_etag: true,
    };
    Ok(Parsed::Ready(ContainerOperation::ListBlobs(list).into()))
}

/// `max-keys`: 1,000 when absent, and at most.
fn max_keys(request: &Request<'_>) -> Result<u32, Refusal> {
    let Some(text) = request.query.get("max-keys")? else { return Ok(KEYS_MAX) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(query::invalid("max-keys", text));
    }
    Ok(text.parse().unwrap_or(KEYS_MAX).min(KEYS_MAX))
}
