//! Put Block From URL, Append Block From URL, Put Page From URL.

use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::lookup;
use crate::frontend::lookup::Located;
use crate::frontend::ops::appends;
use crate::frontend::ops::appends::Append;
use crate::frontend::ops::blocks::NewBlock;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Wanted;
use crate::frontend::ops::pages;
use crate::frontend::ops::pages::LocatedPages;
use crate::frontend::ops::pages::TargetPages;
use crate::frontend::source;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::index::AppendBlock;
use crate::index::StageBlock;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::copy::CopySource;

/// The longest source of Put Block From URL, in bytes.
const BLOCK_BYTES_MAX: u64 = 4_000 << 20;
/// The longest source of Append Block From URL, in bytes.
const APPEND_BYTES_MAX: u64 = 100 << 20;

/// Put Block From URL.
pub(crate) async fn put_block(
    front: &FrontEnd,
    requester: Requester<'_>,
    NewBlock { blob, id }: NewBlock<'_>,
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate_for_change(&front.rows).await?;
    let found = source::open(front, requester, source).await?;
    check_not_empty(found.len())?;
    take::check_len(found.len(), BLOCK_BYTES_MAX)?;
    let (form, key) = (Form::Part, precondition.encryption.key());
    let taken = take::take(front, found, Wanted { source, form, key }).await?;
    let content = take::flat(&taken.content).ok_or(Reason::InternalError)?;
    let checksums = WrittenChecksums { crc64: taken.crc64, md5: taken.md5 };
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = StageBlock { key: blob.key, guard, id, content, crc64: taken.kept_crc64 };
    match take::commit(&front.rows, Some(container), write, Some(taken.hold)).await {
        Ok(_) => Ok(with_encryption_header(Reply::BlockPut(checksums), &encryption)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Append Block From URL.
pub(crate) async fn append(
    front: &FrontEnd,
    requester: Requester<'_>,
    Append { blob, position, len_max }: Append<'_>,
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate_for_change(&front.rows).await?;
    let found = source::open(front, requester, source).await?;
    check_not_empty(found.len())?;
    take::check_len(found.len(), APPEND_BYTES_MAX)?;
    let (form, key) = (Form::Part, precondition.encryption.key());
    let taken = take::take(front, found, Wanted { source, form, key }).await?;
    let content = take::flat(&taken.content).ok_or(Reason::InternalError)?;
    let checksums = WrittenChecksums { crc64: taken.crc64, md5: taken.md5 };
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write =
        AppendBlock { key: blob.key, guard, position, len_max, content, crc64: taken.kept_crc64 };
    match take::commit(&front.rows, Some(container), write, Some(taken.hold)).await {
        Ok(appended) => {
            let reply = appends::appended_reply(appended, checksums);
            Ok(with_encryption_header(reply, &encryption))
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Put Page From URL: bytes, then the row. The bytes are always stored again, because pages are
/// split at offsets of the destination.
pub(crate) async fn put_pages(
    front: &FrontEnd,
    requester: Requester<'_>,
    TargetPages { blob, sequence, range }: TargetPages<'_>,
    source: &CopySource,
) -> Result<Reply, Refusal> {
    let located = blob.locate_for_change(&front.rows).await?;
    let found = source::open(front, requester, source).await?;
    let upload = take::upload(source, found.len());
    if found.len() != range.end - range.start {
        // The source ends before its range does.
        return Err(Reason::InvalidRange.into());
    }
    let mut body = found.body(front).await?;
    let under = Encrypting::new(&front.env, located.precondition.encryption.key());
    let start = range.start;
    let ingested = ingest::ingest_pages(&front.pool, &mut body, &upload, start, under).await?;
    pages::put_stored(front, LocatedPages::new(located, sequence, range), ingested).await
}

fn check_not_empty(len: u64) -> Result<(), Refusal> {
    if len > 0 {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidRange).message("The source has no bytes to take."))
}
