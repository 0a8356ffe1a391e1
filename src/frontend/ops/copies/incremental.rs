//! Incremental Copy Blob, from this store only: the changes are found by comparing the layers of
//! two snapshots, and no byte moves.

use crate::frontend::commit;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::copies::blobs::fresh_id;
use crate::frontend::ops::copies::blobs::properties_under;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::take;
use crate::frontend::source;
use crate::frontend::source::Facts;
use crate::frontend::source::Inside;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::Guard;
use crate::index::Increment;
use crate::index::NewBlobFields;
use crate::index::PutCopy;
use crate::index::ReadBlob;
use crate::index::Refused;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::SourceRefusal;
use crate::protocol::model::copy::CopyIncrement;
use crate::protocol::model::copy::CopyState;
use crate::types::BlobKey;
use crate::types::BlobKind;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::Timestamp;

/// Incremental Copy Blob. The copy is complete when it is answered, but the answer says `pending`,
/// as on the service.
pub(crate) async fn copy_increment(
    front: &FrontEnd,
    requester: Requester<'_>,
    copy: CopyIncrement,
) -> Result<Reply, Refusal> {
    let account = requester.account;
    let blob = BlobTarget { account, path: copy.path, precondition: copy.precondition };
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let found = source::open_inside(front, requester, &copy.source).await?;
    let found = found.ok_or(Reason::InvalidSourceBlobUrl)?;
    let (source, snapshot) = snapshot_of(&found)?;
    let own_key = precondition.encryption.key().cloned();
    if !pages::is_under(&found, own_key.as_ref()) {
        // No byte moves, so no key changes.
        return Err(Reason::BlobCustomerSpecifiedEncryptionMismatch.into());
    }
    let since = last_copied(front, &blob.key, (&source, snapshot)).await?;
    let key = RoutingKey::blob(&blob.key);
    let taken = pages::take_since(front, &key, (&found, since)).await.map_err(of_comparison)?;
    let (id, total) = (fresh_id(front), found.len());
    let record = CopyRecord {
        id,
        source: copy.source.shown(),
        status: CopyStatus::Success,
        description: None,
        copied: total,
        total,
        completed: Some(front.env.clock.now()),
    };
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let Facts { kind, properties, metadata, .. } = found.facts();
    let properties = properties_under(front, own_key.as_ref(), properties);
    let write = Box::new(PutCopy {
        key: blob.key,
        guard,
        kind,
        properties,
        metadata,
        tags: Tags::default(),
        tier: None,
        content: taken.content,
        crc64: taken.kept_crc64,
        copy: Some(Box::new(record)),
        fields: NewBlobFields::default(),
        increment: Some(Increment { source, snapshot, since }),
        job: None,
    });
    let answer = take::commit(&front.rows, Some(container), write, Some(taken.hold)).await;
    let change = commit::changed(answer, Subject::Blob)?;
    let reply = Reply::BlobCopied { change, id, state: CopyState::Pending, checksums: None };
    Ok(with_encryption_header(reply, &encryption))
}

/// The page blob and the snapshot that a source names.
fn snapshot_of(found: &Inside) -> Result<(RoutingKey, Timestamp), Refusal> {
    if !matches!(found.record().kind, BlobKind::Page { .. }) {
        return Err(Reason::InvalidSourceBlobType.into());
    }
    let snapshot = found.blob().revision.snapshot();
    let snapshot = snapshot.ok_or(Reason::IncrementalCopySourceMustBeSnapshot)?;
    Ok((RoutingKey::blob(&found.blob().key), snapshot))
}

/// The snapshot of the source that the destination has; `None` if there is no destination. The
/// commit checks it again.
async fn last_copied(
    front: &FrontEnd,
    destination: &BlobKey,
    (source, snapshot): (&RoutingKey, Timestamp),
) -> Result<Option<Timestamp>, Refusal> {
    let (key, revision, guard) = (destination.clone(), Revision::Current, Guard::default());
    let read = ReadBlob { key, revision, guard, range: None, pieces: false };
    let record = match front.rows.router.ask(read).await {
        Ok(view) => view.record,
        Err(index::Error::Refused(Refused::BlobNotFound)) => return Ok(None),
        Err(error) => return Err(errors::from_index(&error, Subject::Blob)),
    };
    match record.incremental_source() {
        Some(last) if last.blob == *source && last.snapshot < snapshot => Ok(Some(last.snapshot)),
        Some(last) if last.blob == *source => {
            Err(Reason::IncrementalCopyOfEarlierVersionSnapshotNotAllowed.into())
        }
        Some(_) | None => Err(Reason::IncrementalCopyBlobMismatch.into()),
    }
}

/// The refusal of a snapshot that cannot be compared with the previous one.
fn of_comparison(refused: Refusal) -> Refusal {
    match refused.source {
        Some(SourceRefusal {
            reason: reason @ (Reason::BlobOverwritten | Reason::PreviousSnapshotNotFound),
            ..
        }) => reason.into(),
        Some(_) | None => refused,
    }
}
