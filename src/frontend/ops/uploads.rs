//! Uploads in parts: start, parts, completion, abort, and the parts of one. `upload_lists.rs` lists
//! uploads.

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::scope;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::tags;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::AbortUpload;
use crate::index::BlobRecord;
use crate::index::ListParts;
use crate::index::PartPage;
use crate::index::PartView;
use crate::index::StagePart;
use crate::index::StartUpload;
use crate::index::UploadRecord;
use crate::index::UploadRefusal;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::CompleteUpload;
use crate::protocol::model::operation::CreateUpload;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::upload_reply::PartFacts;
use crate::protocol::model::upload_reply::UploadFacts;
use crate::protocol::model::upload_reply::UploadReply;
use crate::types::BlobKey;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::Md5;
use crate::types::PartNumber;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// Starts an upload.
pub(crate) async fn create(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    create: CreateUpload,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let random = [front.env.rand.next_u64(), front.env.rand.next_u64()];
    let id = UploadId::new(front.env.clock.now(), random);
    let (lock, encryption) = (precondition.lock, lookup::guard(precondition).encryption);
    let write = StartUpload {
        key: blob.key,
        id,
        properties: create.properties,
        metadata: create.metadata,
        tags: create.tags,
        tier: create.tier,
        encryption: encryption.clone(),
        checksum: create.checksum,
        initiator: create.object.as_ref().and_then(|object| object.owner.clone()),
        object: create.object,
        lock,
    };
    commit::commit_into(&front.rows, Some(container), Box::new(write), None)
        .await
        .map_err(|error| errors::from_index(&error, Subject::Blob))?;
    let reply = reply(UploadReply::Created(id, create.checksum));
    Ok(with_encryption_header(reply, &encryption))
}

fn reply(reply: UploadReply) -> Reply {
    Reply::Upload(Box::new(reply))
}

/// Reads an upload, or a page of its parts.
async fn ask(front: &FrontEnd, list: ListParts) -> Result<PartPage, index::Error> {
    front.rows.router.ask(list).await
}

/// Reads an upload.
///
/// # Errors
/// `UploadNotFound`.
pub(super) async fn find(
    front: &FrontEnd,
    key: &BlobKey,
    upload: UploadId,
) -> Result<UploadRecord, Refusal> {
    let page = ask(front, ListParts { key: key.clone(), upload, after: 0, limit: 0 }).await;
    page.map(|page| page.record).map_err(|error| errors::from_index(&error, Subject::Blob))
}

/// A part of an upload, but for its bytes.
#[derive(Debug)]
pub(crate) struct NewPart<'a> {
    pub(crate) blob: BlobTarget<'a>,
    pub(crate) upload: UploadId,
    pub(crate) number: PartNumber,
}

/// Uploads a part: bytes, then a row beside the blob; the blob itself does not change.
pub(crate) async fn stage(
    front: &FrontEnd,
    NewPart { blob, upload, number }: NewPart<'_>,
    body_of: &Upload,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    // The encryption is that of the upload: the container's default scope does not count.
    let account = blob.account;
    let Located { container, blob, mut precondition } = blob.locate(&front.rows).await?;
    // The body of a part whose upload is missing is not received.
    let record = find(front, &blob.key, upload).await?;
    scope::fill_of_upload(account, record.blob.under().as_ref(), &mut precondition)?;
    let body_of = &with_checksum(body_of, record.checksum())?;
    let encrypting = Encrypting::new(&front.env, precondition.encryption.key());
    let is_plain = encrypting.is_none();
    let ingested = ingest::ingest_part(&front.pool, body, body_of, is_plain, encrypting).await?;
    let encryption = lookup::guard(precondition).encryption;
    let write = StagePart {
        key: blob.key,
        upload,
        number,
        encryption: encryption.clone(),
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
        checksums: if is_plain { checksums(ingested.md5, ingested.named) } else { Vec::new() },
    };
    let named = ingested.named.map(|named| named.of_whole());
    match commit::commit_into(&front.rows, Some(container), write, Some(ingested.stored)).await {
        Ok(part) => {
            let facts = facts_of_part(part);
            let checksum = named.or(facts.checksum);
            let reply = reply(UploadReply::PartUploaded(PartFacts { checksum, ..facts }));
            Ok(with_encryption_header(reply, &encryption))
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// The body of a part, with the checksum that the upload keeps. It is computed even if the request
/// does not name it.
///
/// # Errors
/// `UploadMismatch` when the request names another one.
fn with_checksum(body: &Upload, kept: Option<UploadChecksum>) -> Result<Upload, Refusal> {
    let Some(kept) = kept.map(|kept| kept.algorithm) else { return Ok(*body) };
    match body.checksums.wanted {
        Some(wanted) if wanted != kept => Err(Refusal::new(Reason::UploadMismatch).message(
            "The part has a checksum of another algorithm than the upload was created with.",
        )),
        Some(_) | None => {
            let checksums = ClaimedChecksums { wanted: Some(kept), ..body.checksums };
            Ok(Upload { checksums, ..*body })
        }
    }
}

/// The checksums in the row of a plain part: its MD5, and the one that the request names or the
/// upload keeps, because a completion may name it. Each row has a CRC-64/NVME anyway. Checksums of
/// encrypted content would reveal information about the plain text.
pub(super) fn checksums(md5: Option<Md5>, named: Option<ChecksumValue>) -> Vec<ContentChecksum> {
    let is_in_row = |named: &ChecksumValue| named.algorithm() == ChecksumAlgorithm::Crc64Nvme;
    let named = named.filter(|named| !is_in_row(named));
    let md5 = md5.map(ContentChecksum::from);
    md5.into_iter().chain(named.map(|named| named.of_whole())).collect()
}

fn facts_of_part(part: PartView) -> PartFacts {
    let PartView { number, len, staged, tag, checksum } = part;
    PartFacts { number, len, time: staged, tag, checksum }
}

/// Completes an upload: one row change, no bytes move.
pub(crate) async fn complete(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    complete: CompleteUpload,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let account = blob.account;
    let Located { container, blob, precondition } = blob.locate(&front.rows).await?;
    let upload = complete.upload.id;
    let begun = begun(front, blob.key.clone(), upload).await?;
    scope::check(account, begun.as_ref().and_then(BlobRecord::under).as_ref())?;
    let tags = begun.map(|begun| begun.tags).unwrap_or_default();
    let tagged = Tagged::new(&blob.key, &container.name, &tags);
    let parts = complete.parts.into_iter().map(|part| index::NamedPart {
        number: part.number,
        tag: part.tag,
        checksum: part.checksum,
    });
    let write = index::CompleteUpload {
        key: blob.key,
        upload,
        guard: lookup::guard(precondition),
        parts: parts.collect(),
        part_len_min: complete.part_len_min,
        len: complete.len,
        checksum: complete.checksum,
        coverage: complete.coverage,
    };
    let (rows, write) = (&front.rows, Box::new(write));
    let answer = commit::commit_into_holding(rows, Some(container), write, memory).await;
    if answer.is_ok() {
        tags::update_index(rows, tagged).await;
    }
    let completed = answer.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    Ok(reply(UploadReply::Completed {
        change: commit::change(completed.written),
        tag: completed.tag,
        checksums: completed.checksums,
    }))
}

/// The fields of the blob that an upload makes; `None` for an upload that has ended.
async fn begun(
    front: &FrontEnd,
    key: BlobKey,
    upload: UploadId,
) -> Result<Option<BlobRecord>, Refusal> {
    match ask(front, ListParts { key, upload, after: 0, limit: 0 }).await {
        Ok(page) => Ok(Some(page.record.blob)),
        Err(index::Error::Refused(index::Refused::Upload(UploadRefusal::NotFound))) => Ok(None),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Aborts an upload.
pub(crate) async fn abort(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    upload: UploadId,
) -> Result<Reply, Refusal> {
    let Located { blob, .. } = blob.locate(&front.rows).await?;
    match commit::commit(&front.rows, AbortUpload { key: blob.key, upload }, None).await {
        Ok(()) => Ok(reply(UploadReply::Aborted)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// The parts of an upload that are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedParts {
    pub(crate) upload: UploadId,
    /// Only parts with higher numbers.
    pub(crate) after: u32,
    /// Parts at most.
    pub(crate) limit: usize,
}

/// Lists the parts of an upload.
pub(crate) async fn parts(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    WantedParts { upload, after, limit }: WantedParts,
) -> Result<Reply, Refusal> {
    let Located { blob, .. } = blob.locate(&front.rows).await?;
    let page = ask(front, ListParts { key: blob.key, upload, after, limit }).await;
    let page = page.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    Ok(reply(UploadReply::Parts {
        upload: facts_of(page.record),
        parts: page.parts.into_iter().map(facts_of_part).collect(),
        is_truncated: page.is_truncated,
    }))
}

/// The facts of an upload that clients see.
pub(super) fn facts_of(record: UploadRecord) -> UploadFacts {
    let checksum = record.checksum();
    let (started, tier) = (record.started(), record.blob.tier.map(|tier| tier.tier));
    let object = record.blob.fields.map(|fields| *fields).unwrap_or_default();
    UploadFacts {
        started,
        initiator: record.fields.and_then(|fields| fields.initiator),
        owner: object.owner,
        tier,
        storage_class: object.storage_class,
        checksum,
    }
}
