//! Append Block and Append Blob Seal.

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::unlock;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::state::FrontEnd;
use crate::index::AppendBlock;
use crate::index::AppendedBlock;
use crate::index::SealBlob;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::operation::Upload;

/// An Append Block, but for its bytes.
#[derive(Debug)]
pub(crate) struct Append<'a> {
    pub(crate) blob: BlobTarget<'a>,
    /// The length that the blob must have.
    pub(crate) position: Option<u64>,
    /// The length that the blob must not exceed.
    pub(crate) len_max: Option<u64>,
}

/// Append Block: bytes, then the row. The commit of the row decides the offset of the block.
pub(crate) async fn append(
    front: &FrontEnd,
    append: Append<'_>,
    upload: &Upload,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let Append { blob, position, len_max } = append;
    let Located { container, blob, precondition } = blob.locate_for_change(&front.rows).await?;
    let encrypting = Encrypting::new(&front.env, precondition.encryption.key());
    let ingested = ingest::ingest_part(&front.pool, body, upload, false, encrypting).await?;
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = AppendBlock {
        key: blob.key,
        guard,
        position,
        len_max,
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
    };
    let checksums = WrittenChecksums { crc64: ingested.crc64, md5: ingested.md5 };
    let stored = Some(ingested.stored);
    match commit::commit_into(&front.rows, Some(container), write, stored).await {
        Ok(appended) => {
            Ok(with_encryption_header(appended_reply(appended, checksums), &encryption))
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// The reply to an Append Block whose row was committed.
pub(crate) fn appended_reply(appended: AppendedBlock, checksums: WrittenChecksums) -> Reply {
    let AppendedBlock { written, offset, blocks } = appended;
    let change = commit::change(written);
    Reply::BlockAppended { change, offset, blocks, checksums }
}

/// Append Blob Seal.
pub(crate) async fn seal(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    position: Option<u64>,
) -> Result<Reply, Refusal> {
    let account = blob.account;
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    unlock::check_blob(front, account, &blob).await?;
    let write = SealBlob { key: blob.key, guard: lookup::guard(precondition), position };
    commit::commit_blob(&front.rows, write, None).await.map(Reply::BlobSealed)
}
