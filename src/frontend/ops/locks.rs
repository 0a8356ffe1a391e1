//! Retention and legal hold of blobs (ADR 0041).

use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::ops::content;
use crate::frontend::state::FrontEnd;
use crate::index::BlobChange;
use crate::index::UpdateBlob;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::LockPart;
use crate::protocol::model::reply::BlobLock;
use crate::types::Retention;

/// The legal hold or the retention of a version.
///
/// # Errors
/// `NoObjectLock`, `ProtectionNotFound`; those of the blob.
pub(crate) async fn get(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    part: LockPart,
) -> Result<Reply, Refusal> {
    let record = lookup::container(&front.rows, blob.account, &blob.path.container).await?;
    if record.object_lock().is_none() {
        return Err(Reason::NoObjectLock.into());
    }
    let facts = content::facts(front, blob).await?;
    let found = match part {
        LockPart::Retention => facts.retention.map(BlobLock::Retention),
        LockPart::LegalHold => facts.legal_hold.map(BlobLock::LegalHold),
    };
    found.map(Reply::Lock).ok_or_else(|| Reason::ProtectionNotFound.into())
}

/// Set and Delete Immutability Policy, `PutObjectRetention`.
///
/// # Errors
/// `NoObjectLock`, `RetentionInPast`, `BlobImmutableDueToPolicy`; those of the blob.
pub(crate) async fn set_retention(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    retention: Option<Retention>,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    change(front, blob, BlobChange::Retention(retention), memory).await?;
    Ok(Reply::RetentionSet(retention))
}

/// Set Legal Hold, `PutObjectLegalHold`.
///
/// # Errors
/// `NoObjectLock`; those of the blob.
pub(crate) async fn set_legal_hold(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    on: bool,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    change(front, blob, BlobChange::LegalHold(on), memory).await?;
    Ok(Reply::LegalHoldSet(on))
}

async fn change(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    change: BlobChange,
    memory: DocumentMemory,
) -> Result<(), Refusal> {
    let Located { blob: BlobVersion { key, revision }, precondition, .. } =
        blob.locate(&front.rows).await?;
    let write = UpdateBlob { key, revision, guard: lookup::guard(precondition), change };
    let answer = commit::commit_holding(&front.rows, write, memory).await;
    answer.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    Ok(())
}
