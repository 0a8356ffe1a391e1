//! Put, change and delete blobs.

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::encrypt_md5;
use crate::frontend::encrypt::kept_checksums;
use crate::frontend::encrypt::unlock;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::tags;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::state::FrontEnd;
use crate::index::BlobChange;
use crate::index::DeleteBlob;
use crate::index::EncryptionClaim;
use crate::index::NewBlobFields;
use crate::index::PutBlob;
use crate::index::UpdateBlob;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::reply::Change;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::ContentEtag;
use crate::types::ContentTag;
use crate::types::CustomerKey;
use crate::types::DeleteScope;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::ObjectProperties;
use crate::types::Tags;

/// A Put Blob, but for its bytes.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    pub(crate) blob: BlobTarget<'a>,
    pub(crate) properties: BlobProperties,
    pub(crate) metadata: Metadata,
    pub(crate) kind: NewKind,
    pub(crate) tags: Tags,
    pub(crate) tier: Option<AccessTier>,
    pub(crate) object: Option<Box<ObjectProperties>>,
    pub(crate) upload: Upload,
}

/// Put Blob: bytes, then the row.
pub(crate) async fn put(
    front: &FrontEnd,
    put: Put<'_>,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } =
        put.blob.locate_for_content(&front.rows).await?;
    let tagged = Tagged::new(&blob.key, &container.name, &put.tags);
    let encrypting = Encrypting::new(&front.env, precondition.encryption.key());
    let ingested = ingest::ingest(&front.pool, body, &put.upload, true, encrypting).await?;
    let mut properties = put.properties;
    let customer_key = precondition.encryption.key().cloned();
    let mut md5 = None;
    if put.kind == NewKind::Block {
        let computed = ingested.md5.ok_or(Reason::InternalError)?;
        if let Some(claimed) = properties.content_md5.plain().filter(|md5| *md5 != computed) {
            return Err(mismatch(claimed, computed));
        }
        md5 = Some(computed);
        properties.content_md5 = md5.into();
    }
    let key = customer_key.as_ref();
    let fields = NewBlobFields {
        content_tag: md5.map(|_| content_tag(front, key)),
        checksums: kept_checksums(&front.env, key, ingested.named, ingested.crc64),
        object: put.object,
    };
    encrypt_md5(&front.env, key, &mut properties);
    // Bytes before pointers: the bytes are durable here; the row that names them is written next.
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = PutBlob {
        key: blob.key,
        guard,
        properties,
        metadata: put.metadata,
        kind: put.kind,
        tags: put.tags,
        tier: put.tier,
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
        fields,
    };
    let tag = write.fields.content_tag;
    let stored = Some(ingested.stored);
    let answer = commit::commit_into(&front.rows, Some(container), write, stored).await;
    let change = commit::changed(answer, Subject::Blob)?;
    tags::update_index(&front.rows, tagged).await;
    let checksums = md5.map(|md5| WrittenChecksums { crc64: ingested.crc64, md5: Some(md5) });
    let content_etag = tag.and_then(|tag| tag.etag(md5));
    let content_etag = content_etag.unwrap_or_else(|| ContentEtag::of_commit(change.etag, 0, 1));
    let checksum = ingested.named.unwrap_or_else(|| ingested.crc64.into());
    let reply = Reply::BlobPut { change, checksums, content_etag, checksum };
    Ok(with_encryption_header(reply, &encryption))
}

/// The source of S3's ETag for content that was uploaded in one piece. Under a customer's key it is
/// random, because an MD5 would confirm a guess of the content.
pub(super) fn content_tag(front: &FrontEnd, key: Option<&CustomerKey>) -> ContentTag {
    match key {
        None => ContentTag::PropertyMd5,
        Some(_) => ContentTag::Opaque(encrypt::random(&front.env), 1),
    }
}

fn mismatch(claimed: Md5, computed: Md5) -> Refusal {
    Refusal::new(Reason::Md5Mismatch)
        .detail(Detail::ClaimedMd5, claimed.to_base64())
        .detail(Detail::ComputedMd5, computed.to_base64())
}

/// Set Blob Properties.
pub(crate) async fn set_properties(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    properties: BlobProperties,
) -> Result<Reply, Refusal> {
    let changed = update(front, blob, BlobChange::Properties(properties)).await;
    changed.map(Reply::BlobPropertiesSet)
}

/// Set Blob Metadata.
pub(crate) async fn set_metadata(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    metadata: Metadata,
) -> Result<Reply, Refusal> {
    let (change, encryption) = update_under(front, blob, BlobChange::Metadata(metadata)).await?;
    Ok(with_encryption_header(Reply::BlobMetadataSet(change), &encryption))
}

/// Changes a blob.
///
/// # Errors
/// Those of the conditions, and of the index.
pub(super) async fn update(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    change: BlobChange,
) -> Result<Change, Refusal> {
    update_under(front, blob, change).await.map(|(change, _)| change)
}

/// As [`update`]. Also returns the encryption of the blob, as far as the request or its container
/// names it.
async fn update_under(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    mut change: BlobChange,
) -> Result<(Change, EncryptionClaim), Refusal> {
    let account = blob.account;
    let Located { container, blob, mut precondition } = blob.locate_for_change(&front.rows).await?;
    if let BlobChange::Properties(properties) = &mut change {
        unlock::fill_of_blob(front, account, (&blob, &mut precondition)).await?;
        encrypt_md5(&front.env, precondition.encryption.key(), properties);
    }
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    // Only a change of metadata makes a version.
    let into = matches!(change, BlobChange::Metadata(_)).then_some(container);
    let write = UpdateBlob { key: blob.key, revision: blob.revision, guard, change };
    let answer = commit::commit_into(&front.rows, into, write, None).await;
    commit::changed(answer, Subject::Blob).map(|change| (change, encryption))
}

/// Delete Blob.
pub(crate) async fn delete(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    scope: DeleteScope,
) -> Result<Reply, Refusal> {
    if matches!(scope, DeleteScope::Permanently(_)) && !blob.account.permanent_delete {
        return Err(Reason::PermanentDeletionDisabled.into());
    }
    let noted = front.rows.inflight.commit();
    let Located { container, blob, precondition } = blob.locate(&front.rows).await?;
    let write = DeleteBlob { key: blob.key, guard: lookup::guard(precondition), scope };
    match commit::commit_deletion(&front.rows, container, write, noted).await {
        Ok(deletion) => Ok(Reply::BlobDeleted(deletion)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}
