//! Documents of buckets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::document::begin;
use crate::protocol::s3::render::document::owner;
use crate::protocol::wire::escape;

/// The region that has no name in a location: S3's first.
const FIRST_REGION: &str = "us-east-1";

/// `ListBuckets`. Containers whose names begin with `$` are Azure's own.
pub(super) fn list(page: &ContainerListing, echo: &S3Echo) -> String {
    let query = echo.parameters();
    let parameter = |name: &str| query.get(name).ok().flatten();
    let wanted = parameter("bucket-region");
    let mut out = begin("ListAllMyBucketsResult");
    let sender = echo.sender.as_ref().map_or(&echo.owner, |[canonical, _]| canonical);
    owner(&mut out, sender, echo);
    out.push_str("<Buckets>");
    for item in page.items.iter().filter(|item| !item.name.starts_with('$')) {
        let region = item.facts.region.as_deref().unwrap_or(&echo.region);
        if wanted.is_some_and(|wanted| wanted != region) {
            continue;
        }
        out.push_str("<Bucket>");
        escape::element(&mut out, "Name", &item.name);
        escape::plain(&mut out, "CreationDate", item.facts.created.to_iso_millis());
        escape::element(&mut out, "BucketRegion", region);
        out.push_str("</Bucket>");
    }
    out.push_str("</Buckets>");
    if let Some(prefix) = parameter("prefix") {
        escape::referenced(&mut out, "Prefix", prefix);
    }
    if let Some(next) = &page.next {
        escape::plain(&mut out, "ContinuationToken", URL_SAFE_NO_PAD.encode(next));
    }
    out.push_str("</ListAllMyBucketsResult>");
    out
}

/// `GetBucketLocation`.
pub(super) fn location(region: &str) -> String {
    let mut out = begin("LocationConstraint");
    if region != FIRST_REGION {
        escape::text(&mut out, region);
    }
    out.push_str("</LocationConstraint>");
    out
}
