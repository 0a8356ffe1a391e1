//! The byte ranges of the parts of a blob. Blobs that were uploaded in parts can be read by part.
//! Source: S3, GetObject, `partNumber`.

use std::ops::Range;

use crate::index::api::Error;
use crate::index::api::PartRange;
use crate::index::api::ReadPart;
use crate::index::api::UploadRefusal;
use crate::index::objects::guard;
use crate::index::objects::layout;
use crate::index::objects::layout::Segments;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::record::BlobRecord;
use crate::index::rows::Rows;
use crate::types::BlockId;
use crate::types::ContentTag;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Finds a part. A blob that was not uploaded in parts has one part, number 1.
pub(super) async fn part(
    view: &dyn Rows,
    read: &ReadPart,
    now: Timestamp,
) -> Result<PartRange, Error> {
    let key = RoutingKey::blob(&read.key);
    let of = RevisionOf { revision: read.revision, guard: &read.guard };
    let blob = revision::load(view, &key, of).await?;
    guard::read(&read.guard, &blob.record, now)?;
    let BlobRecord { len, etag, .. } = blob.record;
    let wanted = read.number.block_id();
    let found = match blob.content(&key)?.layout {
        Layout::Blocks(entries) if has_parts(&blob.record) => {
            let parts = Some(u32::try_from(entries.len()).unwrap_or(u32::MAX));
            find(0, &entries, &wanted).map(|range| PartRange { range, parts, etag })
        }
        Layout::Segments { generation, directory } if has_parts(&blob.record) => {
            let parts = directory.iter().fold(0u32, |sum, one| sum.saturating_add(one.entries));
            let segments = Segments { generation, directory: &directory };
            let mut range = None;
            // Part n is at most the n-th one.
            for (place, start) in candidates(segments, read.number.get()) {
                let entries = layout::segment(view, &key, place, start.entries).await?;
                range = find(start.start, &entries, &wanted);
                let is_before = entries.first().is_some_and(|first| first.id > wanted);
                if range.is_some() || !is_before {
                    break;
                }
            }
            range.map(|range| PartRange { range, parts: Some(parts), etag })
        }
        Layout::Whole(_)
        | Layout::Blocks(_)
        | Layout::Segments { .. }
        | Layout::Appended { .. }
        | Layout::Pages { .. } => {
            (read.number.get() == 1).then_some(PartRange { range: 0..len, parts: None, etag })
        }
    };
    found.ok_or_else(|| UploadRefusal::NoSuchPart.into())
}

/// Whether the blob was uploaded in parts, and not changed by a block list since.
pub(super) fn has_parts(record: &BlobRecord) -> bool {
    let tag = record.fields.as_ref().and_then(|fields| fields.content_tag);
    matches!(tag, Some(ContentTag::Parts(..) | ContentTag::Opaque(..)))
}

/// The segments that may have the part with this number, the last first.
fn candidates(
    segments: Segments<'_>,
    number: u32,
) -> impl Iterator<Item = (layout::SegmentPlace, &SegmentStart)> {
    let mut before = 0u32;
    let possible = segments.places().take_while(move |(_, start)| {
        let is_possible = before < number;
        before = before.saturating_add(start.entries);
        is_possible
    });
    possible.collect::<Vec<_>>().into_iter().rev()
}

/// The bytes of a block among those from `start` on.
fn find(start: u64, entries: &[Entry], wanted: &BlockId) -> Option<Range<u64>> {
    let mut at = start;
    for entry in entries {
        let end = at.saturating_add(entry.len);
        if entry.id == *wanted {
            return Some(at..end);
        }
        at = end;
    }
    None
}
