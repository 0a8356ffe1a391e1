//! Put Block List: makes a blob from a list of block ids. Its cost is linear in the blocks that are
//! named, committed and staged.

use std::collections::HashMap;

use crate::index::api::CommitBlocks;
use crate::index::api::Error;
use crate::index::api::NewBlobFields;
use crate::index::api::Refused;
use crate::index::api::WriteReply;
use crate::index::invariant::{Invariant, Violation};
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::chain;
use crate::index::objects::chain::Fate;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::chain::Way;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::new_fields;
use crate::index::objects::share;
use crate::index::objects::staged;
use crate::index::objects::staged::StagedBlocks;
use crate::index::objects::tags;
use crate::index::objects::tier_limits;
use crate::index::objects::values;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BLOCKS_COMMITTED_MAX;
use crate::types::BlobKind;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::BlockSource;
use crate::types::ContentTag;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::Etag;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::TierState;
use crate::types::Timestamp;

/// Blocks looked up before the task yields.
const TURN_BLOCKS: usize = 1_024;

/// Put Block List.
pub(super) async fn commit(
    eval: &mut Evaluation<'_>,
    commit: &CommitBlocks,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&commit.key);
    let old = blob_row::current(eval, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    if before.is_some_and(|old| old.kind != BlobKind::Block) {
        return Err(Refused::WrongKind.into());
    }
    let lease = guard::create(&commit.guard, before, eval.now)?;
    guard::replaceable(&commit.guard, before, eval.now)?;
    let under = before.and_then(BlobRecord::under);
    encryption::check_replaced(&commit.guard.encryption, under.as_ref())?;
    tier_limits::check_new(commit.tier, BlobKind::Block, 0)?;
    if commit.list.len() > BLOCKS_COMMITTED_MAX {
        return Err(Refused::TooManyBlocks.into());
    }
    let Replaced { committed, way } = replace(eval, &key, commit, old.as_ref()).await?;
    let mut dropped = way.dropped.clone();
    let staged = unstage(eval, &key, &commit.list, &mut dropped).await?;
    let entries = resolve(eval.view, &commit.list, &committed, &staged).await?;
    check_entries(&commit.list, &entries).map_err(|violation| eval.view.violated(violation))?;
    encryption::check_blocks(&commit.guard.encryption, &entries)?;
    let kept = entries.iter().flat_map(|entry| entry.content.locations());
    garbage::write(eval, &key, &dropped, kept);
    let named: u64 = entries.iter().map(|entry| entry.content.shared_len()).sum();
    eval.out.shared_dropped = eval.out.shared_dropped.saturating_sub(named);

    tags::changed(eval, &key, &blob_row::tags_of(old.as_ref()), &commit.tags);
    let Total { len, crc64 } = sum(&entries, &key)?;
    let fields = NewBlobFields { content_tag: tag(commit, eval.now), ..NewBlobFields::default() };
    let mut record = BlobRecord {
        properties: commit.properties.clone(),
        metadata: commit.metadata.clone(),
        tier: commit.tier.map(|tier| TierState::new(tier, eval.now)),
        lease,
        tags: commit.tags.clone(),
        fields: new_fields::of(BlobKind::Block, &fields),
        ..BlobRecord::after(before, eval.now, len, crc64)
    };
    record.put_under(commit.guard.encryption.applied());
    way.finish(&mut record, &commit.guard, eval.now)?;
    let content = layout::build(eval, &key, entries);
    check_layout(&content.layout, commit.list.len(), len)
        .map_err(|violation| eval.view.violated(violation))?;
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob_row::written_as(eval.now, &record))
}

/// The content that a block list replaces.
struct Replaced {
    /// The blocks of the blob before.
    committed: Vec<Entry>,
    way: Way,
}

/// Displaces the old blob. If it is kept and the list may take blocks of it, their bytes are marked
/// as shared first.
async fn replace(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    commit: &CommitBlocks,
    old: Option<&Blob>,
) -> Result<Replaced, Error> {
    let mut committed = Vec::new();
    let Some(old) = old else {
        let way = chain::make_way(eval, key, &commit.guard, InTheWay::of(None)).await?;
        return Ok(Replaced { committed, way });
    };
    let layout = old.content(key)?.layout;
    committed = layout::entries(eval.view, key, &layout).await?;
    let takes_committed = commit.list.iter().any(|named| named.source != BlockSource::Uncommitted);
    let is_kept = chain::fate(&commit.guard, &old.record, eval.now)? != Fate::Dropped;
    let way = if is_kept && takes_committed && !committed.is_empty() {
        let marked = share::with_marked_content(eval, key, old.clone()).await?;
        committed.iter_mut().for_each(|entry| entry.content.mark());
        let of = InTheWay::of(Some(&marked));
        chain::make_way(eval, key, &commit.guard, of).await?
    } else {
        let of = InTheWay { blocks: Some(&committed), ..InTheWay::of(Some(old)) };
        chain::make_way(eval, key, &commit.guard, of).await?
    };
    Ok(Replaced { committed, way })
}

/// The tag of content under a key. It cannot be derived from a checksum, because none is kept.
fn tag(commit: &CommitBlocks, now: Timestamp) -> Option<ContentTag> {
    commit.guard.encryption.applied()?.key_sha256()?;
    let number = u32::try_from(commit.list.len()).unwrap_or(u32::MAX);
    Some(ContentTag::of_commit(Etag::from_commit(now), number))
}

/// Removes all staged rows. Returns the blocks that the list may take, and adds the locations of
/// all staged blocks to `dropped`.
async fn unstage<'a>(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    list: &'a [BlockListEntry],
    dropped: &mut Vec<Location>,
) -> Result<HashMap<&'a BlockId, Option<StagedBlock>>, Error> {
    let mut wanted: HashMap<&BlockId, Option<StagedBlock>> = list
        .iter()
        .filter(|entry| entry.source != BlockSource::Committed)
        .map(|entry| (&entry.id, None))
        .collect();
    let Some(summary) = staged::summary(eval.view, key).await? else {
        return Ok(wanted);
    };
    let mut blocks = StagedBlocks::new(eval.view, key, &summary);
    while let Some((id, block)) = blocks.next().await? {
        dropped.extend_from_slice(block.content.owned());
        eval.out.shared_dropped += block.content.shared_len();
        eval.out.delete(Family::Staged, keys::staged_block(key, &id));
        if let Some(slot) = wanted.get_mut(&id) {
            *slot = Some(block);
        }
    }
    eval.out.delete(Family::Staged, keys::staged_summary(key));
    Ok(wanted)
}

/// Finds each named block in the set that the list specifies: committed, uncommitted, or latest.
async fn resolve(
    view: &dyn Rows,
    list: &[BlockListEntry],
    committed: &[Entry],
    staged: &HashMap<&BlockId, Option<StagedBlock>>,
) -> Result<Vec<Entry>, Error> {
    let mut by_id: HashMap<&BlockId, &Entry> = HashMap::with_capacity(committed.len());
    for entry in committed {
        by_id.entry(&entry.id).or_insert(entry);
    }
    let mut entries = Vec::with_capacity(list.len());
    for (number, BlockListEntry { source, id }) in list.iter().enumerate() {
        if number % TURN_BLOCKS == TURN_BLOCKS - 1 {
            view.rest(TURN_BLOCKS).await;
        }
        let from_staged = || {
            let block = staged.get(id)?.as_ref()?;
            let StagedBlock { len, crc64, fields, content, time: _ } = block.clone();
            Some(Entry { id: *id, len, crc64, content, fields })
        };
        let from_committed = || by_id.get(id).map(|&entry| entry.clone());
        let found = match source {
            BlockSource::Committed => from_committed(),
            BlockSource::Uncommitted => from_staged(),
            BlockSource::Latest => from_staged().or_else(from_committed),
        };
        entries.push(found.ok_or(Refused::UnknownBlock)?);
    }
    // Staged blocks have ids of one length, which need not be that of the committed blocks.
    let id_lens = list.iter().map(|named| named.id.as_bytes().len());
    if !id_lens.clone().zip(id_lens.skip(1)).all(|(one, next)| one == next) {
        return Err(Refused::BlockIdLength.into());
    }
    Ok(entries)
}

/// # Errors
/// [`Invariant::ExactBlocks`] if these are not the blocks of the list, or if one is not as long as
/// its bytes.
fn check_entries(list: &[BlockListEntry], entries: &[Entry]) -> Result<(), Violation> {
    let is_named = list.iter().map(|named| &named.id).eq(entries.iter().map(|entry| &entry.id));
    Invariant::ExactBlocks.assert(is_named, || {
        format!("a list of {} blocks names {} others", list.len(), entries.len())
    })?;
    check_lengths(entries)
}

/// # Errors
/// [`Invariant::ExactBlocks`] if a block is not as long as its bytes.
pub(super) fn check_lengths(entries: &[Entry]) -> Result<(), Violation> {
    let mut unlike = entries.iter().filter(|entry| entry.content.len() != entry.len);
    let Some(entry) = unlike.next() else { return Ok(()) };
    let (len, held) = (entry.len, entry.content.len());
    Err(Invariant::ExactBlocks
        .violated(format!("a block of {len} bytes has content of {held} bytes")))
}

/// # Errors
/// [`Invariant::ExactBlocks`] if the layout does not have `list` blocks, or if a segment does not
/// begin inside the blob.
pub(super) fn check_layout(layout: &Layout, list: usize, len: u64) -> Result<(), Violation> {
    let (blocks, is_inside) = match layout {
        Layout::Blocks(entries) => (entries.len(), true),
        Layout::Segments { directory, .. } => {
            let entries = |segment: &SegmentStart| usize::try_from(segment.entries).unwrap_or(0);
            let inside = directory.iter().all(|segment| segment.start <= len);
            (directory.iter().map(entries).sum(), inside)
        }
        Layout::Whole(_) | Layout::Appended { .. } | Layout::Pages { .. } => (0, false),
    };
    Invariant::ExactBlocks.assert(blocks == list && is_inside, || {
        format!("a layout of {blocks} blocks for a list of {list}")
    })
}

/// Length and checksum of a blob.
pub(super) struct Total {
    pub(super) len: u64,
    pub(super) crc64: Crc64,
}

/// Adds up the lengths and checksums of blocks.
pub(super) fn sum(entries: &[Entry], key: &RoutingKey) -> Result<Total, Error> {
    let mut len = 0u64;
    let mut crc64 = Crc64::EMPTY;
    let mut combiner = Crc64Combiner::default();
    for entry in entries {
        len = len
            .checked_add(entry.len)
            .ok_or_else(|| keys::corrupt(Family::Main, key.as_bytes(), "block lengths overflow"))?;
        crc64 = combiner.combine(crc64, entry.crc64, entry.len);
    }
    Ok(Total { len, crc64 })
}

#[cfg(test)]
mod tests;
