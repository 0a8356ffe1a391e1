//! Get Page Ranges, also of the changes since a snapshot.
//!
//! A snapshot takes the layers that the blob has then, and later writes to the blob go to a new
//! layer. So the layers that only the later of two states has are the changes between them: spans
//! with bytes were written, spans without bytes were cleared.

use std::ops::Range;

use crate::index::api::Error;
use crate::index::api::PageRange;
use crate::index::api::PageRanges;
use crate::index::api::ReadPages;
use crate::index::api::Refused;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Place;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::spans::Overlay;
use crate::index::objects::values::Layout;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::PAGE_BYTES;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The most spans that one answer examines. The caller asks again from its end.
const SPANS_MAX: usize = 20_000;

/// Get Page Ranges.
pub(super) async fn ranges(
    view: &dyn Rows,
    read: &ReadPages,
    now: Timestamp,
) -> Result<PageRanges, Error> {
    let key = RoutingKey::blob(&read.key);
    let of = RevisionOf { revision: read.revision, guard: &read.guard };
    let blob = revision::load(view, &key, of).await?;
    if !matches!(blob.record.kind, BlobKind::Page { .. }) {
        return Err(Refused::WrongKind.into());
    }
    guard::read(&read.guard, &blob.record, now)?;
    guard::not_incremental(&blob.record)?;
    let Layout::Pages { mut layers } = blob.content(&key)?.layout else {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "not the layout of a page blob"));
    };
    if let Some(since) = read.since {
        if read.revision.snapshot().is_some_and(|snapshot| snapshot < since) {
            return Err(Refused::ComparedWithNewer.into());
        }
        layers = layers_since(view, &key, layers, since).await?;
    }
    let len = blob.record.len;
    let wanted = match read.range {
        None => 0..len,
        Some(range) => pages(range.within(len).ok_or(Refused::InvalidRange { len })?, len),
    };
    let mut found = Joined::default();
    let mut overlay = Overlay::new(view, &key, &layers, &wanted).await?;
    for _ in 0..SPANS_MAX {
        let Some(seen) = overlay.next().await? else {
            return Ok(PageRanges { record: blob.record, ranges: found.ranges, next: None });
        };
        let cleared = match seen.span {
            None => continue,
            Some(span) if span.content.is_some() => false,
            // Without a comparison a cleared span is the same as no span.
            Some(_) if read.since.is_none() => continue,
            Some(_) => true,
        };
        if !found.add(seen.range.clone(), cleared, read.limit) {
            let next = Some(seen.range.start);
            return Ok(PageRanges { record: blob.record, ranges: found.ranges, next });
        }
    }
    let next = overlay.next().await?.map(|seen| seen.range.start);
    Ok(PageRanges { record: blob.record, ranges: found.ranges, next })
}

/// The layers that the snapshot taken at `since` does not have.
pub(super) async fn layers_since(
    view: &dyn Rows,
    key: &RoutingKey,
    mut layers: Vec<u64>,
    since: Timestamp,
) -> Result<Vec<u64>, Error> {
    let before = blob_row::load_row(view, key, Place::Snapshot(since)).await?;
    let before = before.ok_or(Refused::ComparedWithNothing)?;
    let Layout::Pages { layers: old } = before.content(key)?.layout else {
        return Err(Refused::MadeAnew.into());
    };
    if old.is_empty() || !layers.ends_with(&old) {
        return Err(Refused::MadeAnew.into());
    }
    layers.truncate(layers.len() - old.len());
    Ok(layers)
}

/// The range of the pages that a range of bytes touches.
fn pages(range: Range<u64>, len: u64) -> Range<u64> {
    let start = range.start - range.start % PAGE_BYTES;
    start..range.end.next_multiple_of(PAGE_BYTES).min(len)
}

/// The ranges of an answer. Adjacent ranges are joined.
#[derive(Debug, Default)]
struct Joined {
    ranges: Vec<PageRange>,
}

impl Joined {
    /// Adds a range. Returns false if there is no room for it.
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
