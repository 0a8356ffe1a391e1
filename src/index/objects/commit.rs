//! Put Block List: from a list of ids to a blob. Linear in the blocks named, committed and staged.

use std::collections::HashMap;

use crate::index::api::CommitBlocks;
use crate::index::api::Error;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::encryption;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::staged;
use crate::index::objects::staged::StagedBlocks;
use crate::index::objects::tags;
use crate::index::objects::values;
use crate::index::objects::values::Entry;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::BLOCKS_COMMITTED_MAX;
use crate::types::BlobKind;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::BlockSource;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::TierState;
use crate::types::Timestamp;

/// Blocks looked up before other tasks of the thread have their turn.
const TURN_BLOCKS: usize = 1_024;

/// Put Block List.
pub(super) async fn commit(
    view: &dyn Rows,
    commit: &CommitBlocks,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&commit.key);
    let old = blob_row::load(view, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    if before.is_some_and(|old| old.kind != BlobKind::Block) {
        return Err(Error::WrongKind);
    }
    let lease = guard::create(&commit.guard, before, now)?;
    before.map_or(Ok(()), |before| guard::not_archived(before, now))?;
    if commit.list.len() > BLOCKS_COMMITTED_MAX {
        return Err(Error::TooManyBlocks);
    }
    let mut dropped = Vec::new();
    let mut committed = Vec::new();
    if let Some(old) = &old {
        let layout = old.content(&key)?.layout;
        committed = layout::entries(view, &key, &layout).await?;
        match &layout {
            values::Layout::Whole(content) => {
                out.shared_dropped += content.shared_len();
                dropped.extend_from_slice(content.owned());
            }
            values::Layout::Blocks(_)
            | values::Layout::Segments { .. }
            | values::Layout::Appended { .. }
            | values::Layout::Pages { .. } => {
                out.shared_dropped += committed.iter().map(|e| e.content.shared_len()).sum::<u64>();
                dropped.extend(committed.iter().flat_map(|e| e.content.owned()).copied());
            }
        }
        layout::remove_rows(&key, &layout, now, out);
    }
    let staged = unstage(view, &key, &commit.list, &mut dropped, out).await?;
    let entries = resolve(view, &commit.list, &committed, &staged).await?;
    encryption::check_blocks(&commit.guard.encryption, &entries)?;
    let kept = entries.iter().flat_map(|entry| entry.content.locations());
    garbage::write(&key, now, &dropped, kept, out);
    let named: u64 = entries.iter().map(|entry| entry.content.shared_len()).sum();
    out.shared_dropped = out.shared_dropped.saturating_sub(named);

    tags::changed(&key, (&blob_row::tags_of(old.as_ref()), &commit.tags), now, out);
    let (len, crc64) = sum(&entries, &key)?;
    let record = BlobRecord {
        properties: commit.properties.clone(),
        metadata: commit.metadata.clone(),
        tier: commit.tier.map(|tier| TierState::new(tier, now)),
        encryption: commit.guard.encryption.applied(),
        lease,
        tags: commit.tags.clone(),
        ..BlobRecord::after(before, now, len, crc64)
    };
    let content = layout::build(&key, entries, now, out);
    out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob_row::written(now))
}

/// Removes all staged rows; returns the blocks the list may take, and adds the locations of all of
/// them to `dropped`.
async fn unstage<'a>(
    view: &dyn Rows,
    key: &RoutingKey,
    list: &'a [BlockListEntry],
    dropped: &mut Vec<Location>,
    out: &mut RowBatch,
) -> Result<HashMap<&'a BlockId, Option<StagedBlock>>, Error> {
    let mut wanted: HashMap<&BlockId, Option<StagedBlock>> = list
        .iter()
        .filter(|entry| entry.source != BlockSource::Committed)
        .map(|entry| (&entry.id, None))
        .collect();
    let Some(summary) = staged::summary(view, key).await? else {
        return Ok(wanted);
    };
    let mut blocks = StagedBlocks::new(view, key, &summary);
    while let Some((id, block)) = blocks.next().await? {
        dropped.extend_from_slice(block.content.owned());
        out.shared_dropped += block.content.shared_len();
        out.delete(Family::Staged, keys::staged_block(key, &id));
        if let Some(slot) = wanted.get_mut(&id) {
            *slot = Some(block);
        }
    }
    out.delete(Family::Staged, keys::staged_summary(key));
    Ok(wanted)
}

/// Finds each named block where the list says to look.
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
            Some(Entry { id: id.clone(), len, crc64, content, fields })
        };
        let from_committed = || by_id.get(id).map(|&entry| entry.clone());
        let found = match source {
            BlockSource::Committed => from_committed(),
            BlockSource::Uncommitted => from_staged(),
            BlockSource::Latest => from_staged().or_else(from_committed),
        };
        entries.push(found.ok_or(Error::UnknownBlock)?);
    }
    Ok(entries)
}

/// Length and checksum of the whole, from those of the blocks.
fn sum(entries: &[Entry], key: &RoutingKey) -> Result<(u64, Crc64), Error> {
    let mut len = 0u64;
    let mut crc64 = Crc64::EMPTY;
    let mut combiner = Crc64Combiner::default();
    for entry in entries {
        len = len
            .checked_add(entry.len)
            .ok_or_else(|| keys::corrupt(Family::Main, key.as_bytes(), "block lengths overflow"))?;
        crc64 = combiner.combine(crc64, entry.crc64, entry.len);
    }
    Ok((len, crc64))
}
