//! Append Block and Append Blob Seal.

use crate::frontend::accounts::Account;
use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ingest::Ingested;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::index::AppendBlock;
use crate::index::AppendedBlock;
use crate::index::SealBlob;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::reply::Change;
use crate::types::BlobKey;

/// Where an append may go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) position: Option<u64>,
    pub(crate) len_max: Option<u64>,
}

/// Append Block: bytes, then the row; where they come to stand is decided with the row.
pub(crate) async fn append(
    front: &FrontEnd,
    account: &Account,
    (path, precondition, bounds): (BlobPath, Precondition, Bounds),
    upload: &Upload,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, account, path).await?;
    let encrypting = Encrypting::new(&front.env, precondition.encryption.key());
    let ingested = ingest::ingest_part(&front.pool, body, upload, encrypting).await?;
    append_stored(front, key, (precondition, bounds), ingested).await
}

/// Appends bytes that are stored already.
pub(crate) async fn append_stored(
    front: &FrontEnd,
    key: BlobKey,
    (precondition, bounds): (Precondition, Bounds),
    ingested: Ingested,
) -> Result<Reply, Refusal> {
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = AppendBlock {
        key,
        guard,
        position: bounds.position,
        len_max: bounds.len_max,
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
    };
    let checksum = BodyChecksum::new(ingested.crc64, ingested.md5);
    match commit::commit(front, write, Some(ingested.stored)).await {
        Ok(AppendedBlock { written, offset, blocks }) => {
            let change = Change { etag: written.etag, last_modified: written.last_modified };
            Ok(with_encryption_header(
                Reply::BlockAppended { change, offset, blocks, checksum },
                &encryption,
            ))
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Append Blob Seal.
pub(crate) async fn seal(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: Precondition,
    position: Option<u64>,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, account, path).await?;
    let write = SealBlob { key, guard: lookup::guard(precondition), position };
    commit::commit_blob(front, write, None).await.map(Reply::BlobSealed)
}
