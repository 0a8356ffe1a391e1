//! Share: marks a blob's content as shared, so that other rows may name it.
//!
//! The whole content is marked, even if only a part is wanted. A block list may name a block many
//! times. If a location were marked in one place and owned in another, it could be freed while the
//! copy names it.

use std::ops::Range;

use crate::index::api::CopiedBlock;
use crate::index::api::CopiedContent;
use crate::index::api::EncryptionClaim;
use crate::index::api::Error;
use crate::index::api::NewContent;
use crate::index::api::Share;
use crate::index::api::SharedBlob;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::layout::SegmentPlace;
use crate::index::objects::layout::Segments;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::share_frames;
use crate::index::objects::share_frames::FramesOfRange;
use crate::index::objects::share_frames::touched;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::record::Encryption;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::RoutingKey;

/// Share.
pub(super) async fn share(eval: &mut Evaluation<'_>, share: &Share) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&share.key);
    let of = RevisionOf { revision: share.revision, guard: &share.guard };
    let blob = revision::load(eval.view, &key, of).await?;
    guard::read(&share.guard, &blob.record, eval.now)?;
    if !share.guard.over_archived {
        guard::not_archived(&blob.record, eval.now)?;
    }
    encryption::check(&share.guard.encryption, blob.record.under().as_ref())?;
    let found = blob.content(&key)?;
    let range = share.range.clone().unwrap_or(0..blob.record.len);
    let is_locked = is_locked(&share.guard.encryption, blob.record.under().as_ref());
    let content = if is_locked {
        None
    } else if range == (0..blob.record.len) {
        all(eval.view, &key, &found.layout).await?
    } else {
        part(eval.view, &key, &found.layout, &range).await?
    };
    let cut = match content {
        None if !is_locked => share_frames::find(eval.view, &key, &found.layout, &range).await?,
        None | Some(_) => FramesOfRange::default(),
    };
    let owned = cut.is_owned || content.iter().flat_map(CopiedContent::pieces).any(is_owned);
    if owned {
        let marked = with_marked_content(eval, &key, blob.clone()).await?;
        marked.store(eval, &key);
    }
    let (content, frames) = (content.map(shared), cut.frames);
    Ok(WriteReply::Shared(Box::new(SharedBlob { record: blob.record, content, frames })))
}

/// Whether the content is under a customer's key that the request does not send.
const fn is_locked(claim: &EncryptionClaim, encryption: Option<&Encryption>) -> bool {
    matches!(encryption, Some(Encryption::Customer(_)))
        && matches!(claim, EncryptionClaim::Unchecked)
}

fn is_owned(content: &NewContent) -> bool {
    match content {
        NewContent::Stored(_) => true,
        NewContent::Inline(_) | NewContent::Shared(_) => false,
        NewContent::Encrypted(_, bytes) | NewContent::Authenticated(_, bytes) => is_owned(bytes),
    }
}

/// All blocks, including those without bytes: a copy takes over the block list. `None` if the blob
/// has pages, which another request shares in parts.
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

/// The blocks of a range that is smaller than the blob; `None` if the range divides a block, or if
/// the blob has pages.
async fn part(
    view: &dyn Rows,
    key: &RoutingKey,
    layout: &Layout,
    range: &Range<u64>,
) -> Result<Option<CopiedContent>, Error> {
    Ok(match layout {
        Layout::Whole(_) | Layout::Pages { .. } => None,
        Layout::Blocks(entries) => blocks_in(0, entries, range).map(CopiedContent::Blocks),
        Layout::Segments { generation, directory } => {
            let touched = touched(directory, range);
            let start = directory.get(touched.start).map_or(0, |segment| segment.start);
            let mut entries = Vec::new();
            let segments = Segments { generation: *generation, directory };
            for (place, segment) in segments.places().take(touched.end).skip(touched.start) {
                entries.append(&mut layout::segment(view, key, place, segment.entries).await?);
            }
            blocks_in(start, &entries, range).map(CopiedContent::Blocks)
        }
        Layout::Appended { .. } => {
            let entries = layout::entries(view, key, layout).await?;
            blocks_in(0, &entries, range).map(CopiedContent::Blocks)
        }
    })
}

/// The entries that lie in the range; `None` if they do not cover exactly the range. The first
/// entry begins at `start`.
fn blocks_in(start: u64, entries: &[Entry], range: &Range<u64>) -> Option<Vec<CopiedBlock>> {
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
        id: entry.id,
        len: entry.len,
        crc64: entry.crc64,
        content: (&entry.content).into(),
        checksums: entry.fields.as_ref().map(|own| own.checksums.clone()).unwrap_or_default(),
    }
}

/// Content for an answer, marked as shared.
pub(super) fn marked(content: &Content) -> NewContent {
    with_mark(content.into())
}

fn with_mark(content: NewContent) -> NewContent {
    match content {
        NewContent::Stored(locations) => NewContent::Shared(locations),
        NewContent::Inline(_) | NewContent::Shared(_) => content,
        NewContent::Encrypted(nonce, bytes) => {
            NewContent::Encrypted(nonce, Box::new(with_mark(*bytes)))
        }
        NewContent::Authenticated(nonce, bytes) => {
            NewContent::Authenticated(nonce, Box::new(with_mark(*bytes)))
        }
    }
}

/// The content of an answer, marked as shared.
fn shared(content: CopiedContent) -> CopiedContent {
    match content {
        CopiedContent::Pages { .. } => content,
        CopiedContent::Whole(content) => CopiedContent::Whole(with_mark(content)),
        CopiedContent::Blocks(blocks) => CopiedContent::Blocks(
            blocks
                .into_iter()
                .map(|block| CopiedBlock { content: with_mark(block.content), ..block })
                .collect(),
        ),
    }
}

/// Marks the content of a blob as shared. Rewrites the segments of its layout; the caller writes
/// its row.
pub(super) async fn with_marked_content(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    blob: Blob,
) -> Result<Blob, Error> {
    let mut content = blob.content(key)?;
    match &mut content.layout {
        Layout::Pages { .. } => return Ok(blob),
        Layout::Whole(whole) => whole.mark(),
        Layout::Blocks(entries) => entries.iter_mut().for_each(|entry| entry.content.mark()),
        Layout::Segments { generation, directory } => {
            mark_segments(eval, key, Segments { generation: *generation, directory }).await?;
            return Ok(blob);
        }
        Layout::Appended { generation, directory, tail } => {
            mark_segments(eval, key, Segments { generation: *generation, directory }).await?;
            tail.iter_mut().for_each(|entry| entry.content.mark());
        }
    }
    Ok(blob.with_content(&content))
}

async fn mark_segments(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    segments: Segments<'_>,
) -> Result<(), Error> {
    for (place, segment) in segments.places() {
        let SegmentPlace { generation, number } = place;
        let mut entries = layout::segment(eval.view, key, place, segment.entries).await?;
        entries.iter_mut().for_each(|entry| entry.content.mark());
        let row = keys::layout_segment(key, generation, number);
        eval.out.put(Family::Layout, row, values::encode_segment(&entries));
    }
    Ok(())
}
