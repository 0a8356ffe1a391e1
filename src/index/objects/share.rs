//! Share: marks a blob's content so that other rows may name it.
//!
//! All of it is marked at once, though only a part may be wanted: a block list may name a block
//! many times, and a location that is marked in one place and owned in another would be freed under
//! the copy.

use std::ops::Range;

use crate::index::api::CopiedBlock;
use crate::index::api::CopiedContent;
use crate::index::api::Error;
use crate::index::api::NewContent;
use crate::index::api::Share;
use crate::index::api::SharedBlob;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::record::BlobRecord;
use crate::index::record::Encryption;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Share.
pub(super) async fn share(
    view: &dyn Rows,
    share: &Share,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&share.key);
    let blob =
        blob_row::load_version(view, &key, share.snapshot).await?.ok_or(Error::BlobNotFound)?;
    guard::read(&share.guard, &blob.record, now)?;
    guard::not_archived(&blob.record, now)?;
    let found = blob.content(&key)?;
    let range = share.range.clone().unwrap_or(0..blob.record.len);
    let encrypted = matches!(blob.record.encryption, Some(Encryption::Customer(_)));
    let content = if encrypted {
        None
    } else if range == (0..blob.record.len) {
        all(view, &key, &found.layout).await?
    } else {
        part(view, &key, &found.layout, &range).await?
    };
    let owned = content.iter().flat_map(CopiedContent::pieces).any(is_owned);
    if owned && share.snapshot.is_some() {
        // What is frozen was marked when it froze (`layout::share`).
        return Err(keys::corrupt(Family::Versions, key.as_bytes(), "a snapshot that owns bytes"));
    }
    if owned {
        mark(view, &key, (&blob.record, found), out).await?;
    }
    let content = content.map(shared);
    Ok(WriteReply::Shared(Box::new(SharedBlob { record: blob.record, content })))
}

fn is_owned(content: &NewContent) -> bool {
    matches!(content, NewContent::Stored(_))
}

/// All blocks, those without bytes too: a copy takes over the block list. `None` when it has pages,
/// which are shared part by part by another request.
async fn all(
    view: &dyn Rows,
    key: &RoutingKey,
    layout: &Layout,
) -> Result<Option<CopiedContent>, Error> {
    Ok(match layout {
        Layout::Whole(content) => Some(CopiedContent::Whole(content.into())),
        Layout::Pages { .. } => None,
        Layout::Blocks(_) | Layout::Segments { .. } | Layout::Appended { .. } => {
            let entries = layout::entries(view, key, layout).await?;
            Some(CopiedContent::Blocks(entries.iter().map(block).collect()))
        }
    })
}

/// The blocks that make up a range smaller than the blob; `None` when it cuts one, or there are
/// pages.
async fn part(
    view: &dyn Rows,
    key: &RoutingKey,
    layout: &Layout,
    range: &Range<u64>,
) -> Result<Option<CopiedContent>, Error> {
    Ok(match layout {
        Layout::Whole(_) | Layout::Pages { .. } => None,
        Layout::Blocks(entries) => cut(0, entries, range).map(CopiedContent::Blocks),
        Layout::Segments { generation, directory } => {
            let (first, last) = segments(directory, range);
            let start = directory.get(first).map_or(0, |segment| segment.start);
            let mut entries = Vec::new();
            for (number, segment) in (0u32..).zip(directory).take(last).skip(first) {
                let place = (*generation, number);
                entries.append(&mut layout::segment(view, key, place, segment.entries).await?);
            }
            cut(start, &entries, range).map(CopiedContent::Blocks)
        }
        Layout::Appended { .. } => {
            let entries = layout::entries(view, key, layout).await?;
            cut(0, &entries, range).map(CopiedContent::Blocks)
        }
    })
}

/// The segments that a range touches, half-open.
fn segments(directory: &[SegmentStart], range: &Range<u64>) -> (usize, usize) {
    let after = |offset: u64| directory.partition_point(|segment| segment.start <= offset);
    let first = after(range.start).saturating_sub(1);
    (first, after(range.end.saturating_sub(1)).max(first))
}

/// The entries, which begin at `start`, that lie in the range; `None` unless they are all of it.
fn cut(start: u64, entries: &[Entry], range: &Range<u64>) -> Option<Vec<CopiedBlock>> {
    let mut at = start;
    let mut blocks = Vec::new();
    for entry in entries {
        let end = at.checked_add(entry.len)?;
        if end > range.start && at < range.end {
            if at < range.start || end > range.end {
                return None;
            }
            blocks.push(block(entry));
        }
        at = end;
    }
    (at >= range.end).then_some(blocks)
}

fn block(entry: &Entry) -> CopiedBlock {
    CopiedBlock {
        id: entry.id.clone(),
        len: entry.len,
        crc64: entry.crc64,
        content: (&entry.content).into(),
    }
}

/// As the caller will see it, with the mark.
pub(super) fn marked(content: &Content) -> NewContent {
    mark_told(content.into())
}

fn mark_told(content: NewContent) -> NewContent {
    match content {
        NewContent::Stored(locations) => NewContent::Shared(locations),
        NewContent::Inline(_)
        | NewContent::Shared(_)
        | NewContent::Encrypted(..)
        | NewContent::Authenticated(..) => content,
    }
}

/// Puts the mark on what is told.
fn shared(content: CopiedContent) -> CopiedContent {
    match content {
        CopiedContent::Pages { .. } => content,
        CopiedContent::Whole(content) => CopiedContent::Whole(mark_told(content)),
        CopiedContent::Blocks(blocks) => CopiedContent::Blocks(
            blocks
                .into_iter()
                .map(|block| CopiedBlock { content: mark_told(block.content), ..block })
                .collect(),
        ),
    }
}

/// Rewrites the rows of a blob with its content marked.
async fn mark(
    view: &dyn Rows,
    key: &RoutingKey,
    (record, mut content): (&BlobRecord, BlobContent),
    out: &mut RowBatch,
) -> Result<(), Error> {
    match &mut content.layout {
        Layout::Pages { .. } => return Ok(()),
        Layout::Whole(whole) => whole.mark(),
        Layout::Blocks(entries) => entries.iter_mut().for_each(|entry| entry.content.mark()),
        Layout::Segments { generation, directory } => {
            return mark_segments(view, key, (*generation, directory), out).await;
        }
        Layout::Appended { generation, directory, tail } => {
            mark_segments(view, key, (*generation, directory), out).await?;
            tail.iter_mut().for_each(|entry| entry.content.mark());
        }
    }
    let row = values::encode_blob(record, &content);
    out.put(Family::Main, key.as_bytes().clone(), row);
    Ok(())
}

async fn mark_segments(
    view: &dyn Rows,
    key: &RoutingKey,
    (generation, directory): (u64, &[SegmentStart]),
    out: &mut RowBatch,
) -> Result<(), Error> {
    for (number, segment) in (0u32..).zip(directory) {
        let place = (generation, number);
        let mut entries = layout::segment(view, key, place, segment.entries).await?;
        entries.iter_mut().for_each(|entry| entry.content.mark());
        let row = keys::layout_segment(key, generation, number);
        out.put(Family::Layout, row, values::encode_segment(&entries));
    }
    Ok(())
}
