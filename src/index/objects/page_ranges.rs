//! Get Page Ranges.

use std::ops::Range;

use crate::index::api::Error;
use crate::index::api::PageRange;
use crate::index::api::PageRanges;
use crate::index::api::ReadPages;
use crate::index::objects::blob;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::spans::Overlay;
use crate::index::objects::values::Layout;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::PAGE_BYTES;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Spans one answer looks at: the caller asks again from where it ended.
const SPANS_MAX: usize = 20_000;

/// Get Page Ranges.
pub(super) async fn ranges(
    view: &dyn Rows,
    read: &ReadPages,
    now: Timestamp,
) -> Result<PageRanges, Error> {
    let key = RoutingKey::blob(&read.key);
    let blob = blob::load(view, &key).await?.ok_or(Error::BlobNotFound)?;
    if !matches!(blob.record.kind, BlobKind::Page { .. }) {
        return Err(Error::WrongKind);
    }
    guard::read(&read.guard, &blob.record, now)?;
    let Layout::Pages { layers } = blob.content(&key)?.layout else {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "not the layout of a page blob"));
    };
    let len = blob.record.len;
    let wanted = match read.range {
        None => 0..len,
        Some(range) => pages(range.within(len).ok_or(Error::InvalidRange { len })?, len),
    };
    let mut found = Joined::default();
    let mut overlay = Overlay::new(view, &key, &layers, &wanted).await?;
    for _ in 0..SPANS_MAX {
        let Some(seen) = overlay.next().await? else {
            return Ok(PageRanges { record: blob.record, ranges: found.ranges, next: None });
        };
        let written = seen.span.is_some_and(|span| span.content.is_some());
        if written && !found.add(seen.range.clone(), false, read.limit) {
            let next = Some(seen.range.start);
            return Ok(PageRanges { record: blob.record, ranges: found.ranges, next });
        }
    }
    let next = overlay.next().await?.map(|seen| seen.range.start);
    Ok(PageRanges { record: blob.record, ranges: found.ranges, next })
}

/// The pages a range of bytes touches.
fn pages(range: Range<u64>, len: u64) -> Range<u64> {
    let start = range.start - range.start % PAGE_BYTES;
    start..range.end.next_multiple_of(PAGE_BYTES).min(len)
}

/// Ranges in the making; neighbours are joined.
#[derive(Debug, Default)]
struct Joined {
    ranges: Vec<PageRange>,
}

impl Joined {
    /// Whether there was room for it.
    fn add(&mut self, range: Range<u64>, cleared: bool, limit: usize) -> bool {
        let full = self.ranges.len() >= limit;
        match self.ranges.last_mut() {
            Some(last) if last.range.end == range.start && last.cleared == cleared => {
                last.range.end = range.end;
                true
            }
            _ if full => false,
            _ => {
                self.ranges.push(PageRange { range, cleared });
                true
            }
        }
    }
}
