//! Blocks and pages from URLs.

use std::ops::Range;

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::lookup;
use crate::frontend::ops::appends::Bounds;
use crate::frontend::ops::copies::Asking;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::pages;
use crate::frontend::source;
use crate::frontend::state::FrontEnd;
use crate::index::AppendBlock;
use crate::index::AppendedBlock;
use crate::index::StageBlock;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::SequenceBounds;
use crate::protocol::model::reply::Change;
use crate::types::BlockId;

/// Bytes of a source that Put Block From URL takes.
const BLOCK_BYTES_MAX: u64 = 4_000 << 20;
/// Bytes of a source that Append Block From URL takes.
const APPEND_BYTES_MAX: u64 = 100 << 20;

/// Put Block From URL.
pub(crate) async fn put_block(
    front: &FrontEnd,
    asking: Asking<'_>,
    (path, id, precondition): (BlobPath, BlockId, Precondition),
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, asking.1, path).await?;
    let found = source::open(front, asking, source).await?;
    check_not_empty(found.len())?;
    take::check_len(found.len(), BLOCK_BYTES_MAX)?;
    let taken = take::take(front, found, source, Form::Part).await?;
    let content = take::flat(&taken.content).ok_or(Reason::InternalError)?;
    let checksum = taken.md5.map_or(BodyChecksum::Crc64(taken.crc64), BodyChecksum::Md5);
    let guard = lookup::guard(precondition);
    let write = StageBlock { key, guard, id, content, crc64: taken.crc64 };
    match take::commit(front, write, taken.hold).await {
        Ok(_) => Ok(Reply::BlockPut(checksum)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Append Block From URL.
pub(crate) async fn append(
    front: &FrontEnd,
    asking: Asking<'_>,
    (path, precondition, bounds): (BlobPath, Precondition, Bounds),
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, asking.1, path).await?;
    let found = source::open(front, asking, source).await?;
    check_not_empty(found.len())?;
    take::check_len(found.len(), APPEND_BYTES_MAX)?;
    let taken = take::take(front, found, source, Form::Part).await?;
    let content = take::flat(&taken.content).ok_or(Reason::InternalError)?;
    let checksum = taken.md5.map_or(BodyChecksum::Crc64(taken.crc64), BodyChecksum::Md5);
    let write = AppendBlock {
        key,
        guard: lookup::guard(precondition),
        position: bounds.position,
        len_max: bounds.len_max,
        content,
        crc64: taken.crc64,
    };
    match take::commit(front, write, taken.hold).await {
        Ok(AppendedBlock { written, offset, blocks }) => {
            let change = Change { etag: written.etag, last_modified: written.last_modified };
            Ok(Reply::BlockAppended { change, offset, blocks, checksum })
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// A Put Page From URL.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) path: BlobPath,
    pub(crate) precondition: Precondition,
    pub(crate) sequence: SequenceBounds,
    pub(crate) range: Range<u64>,
}

/// Put Page From URL: bytes, then the row. Pages are stored once more, since they are cut where
/// they land.
pub(crate) async fn put_pages(
    front: &FrontEnd,
    asking: Asking<'_>,
    put: Pages,
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, asking.1, put.path).await?;
    let found = source::open(front, asking, source).await?;
    let upload = take::upload(source, found.len());
    if upload.len != put.range.end - put.range.start {
        // The source ends before its range does.
        return Err(Reason::InvalidRange.into());
    }
    let mut body = found.body(front).await?;
    let start = put.range.start;
    let ingested = ingest::ingest_pages(&front.pool, &mut body, &upload, start, None).await?;
    pages::put_stored(front, key, (put.precondition, put.sequence, put.range), ingested).await
}

fn check_not_empty(len: u64) -> Result<(), Refusal> {
    if len > 0 {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidRange).message("The source has no bytes to take."))
}
