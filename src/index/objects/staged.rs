//! Staged blocks. Each has a row. A summary row makes the checks of Put Block cheap.

use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::StageBlock;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::layout;
use crate::index::objects::upload;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::StagedBlock;
use crate::index::objects::values::StagedSummary;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BLOCKS_UNCOMMITTED_MAX;
use crate::types::BlobKind;
use crate::types::BlockId;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Put Block.
pub(super) async fn stage(
    eval: &mut Evaluation<'_>,
    stage: &StageBlock,
) -> Result<WriteReply, Error> {
    let blob = RoutingKey::blob(&stage.key);
    let committed = blob_row::current(eval, &blob).await?;
    let lease = committed.as_ref().and_then(|committed| committed.record.lease);
    guard::lease_of_write(stage.guard.lease, lease, eval.now)?;
    committed
        .as_ref()
        .map_or(Ok(()), |committed| guard::not_archived(&committed.record, eval.now))?;
    if committed.as_ref().is_some_and(|committed| guard::is_copying(&committed.record)) {
        return Err(Refused::CopyPending.into());
    }
    let id_len = layout::id_len(stage.id.as_bytes());
    let summary = summary(eval.view, &blob).await?;
    if committed.as_ref().is_some_and(|committed| committed.record.kind != BlobKind::Block) {
        return Err(Refused::WrongKind.into());
    }
    if summary.is_some_and(|summary| summary.id_len != id_len) {
        return Err(Refused::BlockIdLength.into());
    }
    let key = keys::staged_block(&blob, &stage.id);
    let mut count = summary.map_or(0, |s| s.count);
    let content = Content::from(&stage.content);
    match eval.view.get(Family::Staged, &key).await? {
        Some(value) => {
            let old: StagedBlock = values::decode_record(Family::Staged, &key, &value)?;
            eval.out.shared_dropped += old.content.shared_len();
            garbage::write(eval, &blob, old.content.owned(), content.locations());
        }
        None => {
            count = count.saturating_add(1);
            if usize::try_from(count).unwrap_or(usize::MAX) > BLOCKS_UNCOMMITTED_MAX {
                return Err(Refused::TooManyBlocks.into());
            }
        }
    }
    let block = StagedBlock {
        len: content.len(),
        crc64: stage.crc64,
        time: eval.now,
        fields: None,
        content,
    };
    eval.out.put(Family::Staged, key, values::encode_record(&block));
    let summary = StagedSummary { count, id_len, last_staged: eval.now };
    eval.out.put(Family::Staged, keys::staged_summary(&blob), values::encode(&summary));
    Ok(WriteReply::Done)
}

/// Reads the summary of a blob's staged blocks; `None` if it has none.
pub(super) async fn summary(
    view: &dyn Rows,
    blob: &RoutingKey,
) -> Result<Option<StagedSummary>, Error> {
    let key = keys::staged_summary(blob);
    match view.get(Family::Staged, &key).await? {
        Some(value) => values::decode(Family::Staged, &key, &value).map(Some),
        None => Ok(None),
    }
}

/// A walk over the staged blocks of one blob in the order of their ids.
pub(super) struct StagedBlocks<'a> {
    blob: &'a RoutingKey,
    cursor: Cursor<'a>,
}

impl<'a> StagedBlocks<'a> {
    /// A walk over the staged blocks of `blob`. The summary says how many there are.
    pub(super) fn new(view: &'a dyn Rows, blob: &'a RoutingKey, summary: &StagedSummary) -> Self {
        let start = keys::staged_blocks_start(blob);
        let cursor = Cursor::new(view, Family::Staged, start, Some(keys::staged_blocks_end(blob)))
            .expecting(usize::try_from(summary.count).unwrap_or(usize::MAX).saturating_add(1));
        Self { blob, cursor }
    }

    /// The next block and its id.
    pub(super) async fn next(&mut self) -> Result<Option<(BlockId, StagedBlock)>, Error> {
        let Some(row) = self.cursor.take().await? else {
            return Ok(None);
        };
        match keys::parse_staged(&row.key, self.blob)? {
            StagedKey::Block(id) => {
                Ok(Some((id, values::decode_record(Family::Staged, &row.key, &row.value)?)))
            }
            StagedKey::Summary
            | StagedKey::Upload(_)
            | StagedKey::Part(..)
            | StagedKey::Completed(_) => {
                Err(keys::corrupt(Family::Staged, &row.key, "not a block"))
            }
        }
    }
}

/// Removes the staged rows of a blob, and returns the locations that they own.
pub(super) async fn discard(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
) -> Result<Vec<Location>, Error> {
    let mut dropped = Vec::new();
    let Some(summary) = summary(eval.view, blob).await? else {
        return Ok(dropped);
    };
    let mut blocks = StagedBlocks::new(eval.view, blob, &summary);
    while let Some((id, block)) = blocks.next().await? {
        dropped.extend_from_slice(block.content.owned());
        eval.out.shared_dropped += block.content.shared_len();
        eval.out.delete(Family::Staged, keys::staged_block(blob, &id));
    }
    eval.out.delete(Family::Staged, keys::staged_summary(blob));
    Ok(dropped)
}

/// Removes the staged blocks that do not fit a blob which becomes current again. Returns the
/// locations that they own.
pub(super) async fn discard_unfit(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    blob: &Blob,
) -> Result<Vec<Location>, Error> {
    match blob.record.kind {
        BlobKind::Block => Ok(Vec::new()),
        BlobKind::Append { .. } | BlobKind::Page { .. } => discard(eval, key).await,
    }
}

/// Removes the staged blocks of a blob if none was staged since `before`, and the rows of uploads
/// that were completed before then.
pub(super) async fn expire(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    before: Timestamp,
) -> Result<WriteReply, Error> {
    if summary(eval.view, blob).await?.is_some_and(|summary| summary.last_staged < before) {
        let dropped = discard(eval, blob).await?;
        garbage::write(eval, blob, &dropped, &[]);
    }
    upload::forget_completed(eval, blob, before).await?;
    Ok(WriteReply::Done)
}
