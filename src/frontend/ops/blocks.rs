//! Put Block, Put Block List and Get Block List.

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::encrypt_md5;
use crate::frontend::encrypt::unlock;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::ingest;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::ops::tags;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::state::FrontEnd;
use crate::index::BlockView;
use crate::index::CommitBlocks;
use crate::index::ReadBlockList;
use crate::index::StageBlock;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::operation::BlockListKind;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::reply::BlockItem;
use crate::types::AccessTier;
use crate::types::BLOCKS_COMMITTED_MAX;
use crate::types::BLOCKS_UNCOMMITTED_MAX;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::Metadata;
use crate::types::Tags;

/// The most memory that a block takes in a decoded list: its id and its length.
const READ_BYTES: u64 = 96;
/// The most memory that a block takes in a rendered list: its id in Base64, its length and four
/// tags. Counted twice, because the list is copied into pieces.
const RENDERED_BYTES: u64 = 320;

/// A block that is staged, but for its bytes.
#[derive(Debug)]
pub(crate) struct NewBlock<'a> {
    pub(crate) blob: BlobTarget<'a>,
    pub(crate) id: BlockId,
}

/// Put Block: bytes, then a row beside the blob; the blob itself does not change.
pub(crate) async fn stage(
    front: &FrontEnd,
    NewBlock { blob, id }: NewBlock<'_>,
    upload: &Upload,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let encrypting = Encrypting::new(&front.env, precondition.encryption.key());
    let ingested = ingest::ingest_part(&front.pool, body, upload, false, encrypting).await?;
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = StageBlock {
        key: blob.key,
        guard,
        id,
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
    };
    let checksums = WrittenChecksums { crc64: ingested.crc64, md5: ingested.md5 };
    let stored = Some(ingested.stored);
    match commit::commit_into(&front.rows, Some(container), write, stored).await {
        Ok(_) => Ok(with_encryption_header(Reply::BlockPut(checksums), &encryption)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// A Put Block List.
#[derive(Debug)]
pub(crate) struct PutList<'a> {
    pub(crate) blob: BlobTarget<'a>,
    pub(crate) properties: BlobProperties,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Tags,
    pub(crate) tier: Option<AccessTier>,
    pub(crate) list: Vec<BlockListEntry>,
    pub(crate) checksum: BodyChecksum,
}

/// Put Block List: one row change, no bytes move.
pub(crate) async fn commit(
    front: &FrontEnd,
    mut put: PutList<'_>,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition, .. } =
        put.blob.locate_for_content(&front.rows).await?;
    let tagged = Tagged::new(&blob.key, &container.name, &put.tags);
    encrypt_md5(&front.env, precondition.encryption.key(), &mut put.properties);
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = CommitBlocks {
        key: blob.key,
        guard,
        properties: put.properties,
        metadata: put.metadata,
        tags: put.tags,
        tier: put.tier,
        list: put.list,
    };
    let answer = commit::commit_into_holding(&front.rows, Some(container), write, memory).await;
    let change = commit::changed(answer, Subject::Blob)?;
    tags::update_index(&front.rows, tagged).await;
    Ok(with_encryption_header(Reply::BlockListPut(change, put.checksum), &encryption))
}

/// The most memory that a block list of this kind takes, reserved before its length is known.
/// Blocks of both kinds are read, and those of the wanted kind rendered.
pub(crate) const fn list_memory_of(kind: BlockListKind) -> u64 {
    let both = BLOCKS_COMMITTED_MAX + BLOCKS_UNCOMMITTED_MAX;
    let rendered = match kind {
        BlockListKind::Committed => BLOCKS_COMMITTED_MAX,
        BlockListKind::Uncommitted => BLOCKS_UNCOMMITTED_MAX,
        BlockListKind::All => both,
    };
    both as u64 * READ_BYTES + rendered as u64 * RENDERED_BYTES
}

/// The memory that a decoded block list takes.
pub(crate) fn list_memory(reply: &Reply) -> u64 {
    let Reply::BlockList { committed, uncommitted, .. } = reply else { return 0 };
    let count = |blocks: &Option<Vec<BlockItem>>| blocks.as_ref().map_or(0, Vec::len) as u64;
    (count(committed) + count(uncommitted) + 1).saturating_mul(READ_BYTES + RENDERED_BYTES)
}

/// Get Block List.
pub(crate) async fn list(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    kind: BlockListKind,
) -> Result<Reply, Refusal> {
    let account = blob.account;
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    unlock::check_blob(front, account, &blob).await?;
    let BlobVersion { key, revision } = blob;
    let guard = lookup::guard(precondition);
    let view = front.rows.router.ask(ReadBlockList { key, revision, guard }).await;
    let view = view.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    let items = |blocks: Vec<BlockView>| {
        blocks.into_iter().map(|b| BlockItem { id: b.id, len: b.len }).collect()
    };
    Ok(Reply::BlockList {
        committed_blob: view.record.map(|r| (facts::change(&r), r.len)),
        committed: (kind != BlockListKind::Uncommitted).then(|| items(view.committed)),
        uncommitted: (kind != BlockListKind::Committed).then(|| items(view.uncommitted)),
    })
}
