//! Blobs from URLs.

use bytes::Bytes;
use uuid::Builder;
use uuid::Uuid;

use crate::frontend::commit;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::ops;
use crate::frontend::ops::copies::Asking;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::pending;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::source;
use crate::frontend::source::Facts;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::index::CopiedContent;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::NewContent;
use crate::index::PutCopy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::copy::CopyBlob;
use crate::protocol::model::copy::CopyState;
use crate::protocol::model::copy::PutBlobFromUrl;
use crate::protocol::model::copy::TagOption;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Crc64;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::TierState;

/// Bytes of a source that Put Blob From URL takes.
const PUT_BYTES_MAX: u64 = 5_000 << 20;
/// Bytes of a source that a copy that is waited for takes.
const SYNC_BYTES_MAX: u64 = 256 << 20;

/// Put Blob From URL.
pub(crate) async fn put_blob(
    front: &FrontEnd,
    asking: Asking<'_>,
    mut put: PutBlobFromUrl,
) -> Result<Reply, Refusal> {
    let container = put.path.container.clone();
    let key = lookup::content_key(front, asking.1, put.path, &mut put.precondition).await?;
    let found = source::open(front, asking, &put.source).await?;
    take::check_len(found.len(), PUT_BYTES_MAX)?;
    let facts = found.facts();
    let taken = take::take(front, found, &put.source, Form::Whole).await?;
    let md5 = taken.md5.ok_or(Reason::InternalError)?;
    let mut properties = put.properties;
    if put.source_properties {
        fill_in(&mut properties, &facts.properties);
    }
    properties.content_md5 = properties.content_md5.plain().or(Some(md5)).into();
    let content = take::flat(&taken.content).map_or(taken.content, CopiedContent::Whole);
    let tags = tags(put.tags, &facts);
    let tagged = Tagged::new(&key, &container, &tags);
    let guard = lookup::guard(put.precondition);
    let encryption = guard.encryption.clone();
    let write = Box::new(PutCopy {
        key,
        guard,
        kind: BlobKind::Block,
        properties,
        metadata: put.metadata,
        tags,
        tier: put.tier.map(|tier| TierState::new(tier, front.env.clock.now())),
        content,
        crc64: taken.crc64,
        copy: None,
        job: None,
    });
    let change = commit::changed(take::commit(front, write, taken.hold).await, Subject::Blob)?;
    ops::tags::show(front, tagged).await;
    let reply = Reply::BlobPut { change, md5: Some(md5), crc64: put.source.crc64 };
    Ok(with_encryption_header(reply, &encryption))
}

/// Copy Blob, Copy Blob From URL.
pub(crate) async fn copy(
    front: &FrontEnd,
    asking: Asking<'_>,
    mut copy: CopyBlob,
) -> Result<Reply, Refusal> {
    let container = copy.path.container.clone();
    let key = lookup::content_key(front, asking.1, copy.path, &mut copy.precondition).await?;
    let found = source::open(front, asking, &copy.source).await?;
    if copy.sync && found.len() > SYNC_BYTES_MAX {
        return Err(Refusal::new(Reason::CannotVerifyCopySource).status(409).message(
            "A copy that is waited for takes at most 256 MiB; leave x-ms-requires-sync out.",
        ));
    }
    let facts = found.facts();
    let kind = sealed(facts.kind, copy.seal)?;
    let (id, len) = (fresh_id(front), found.len());
    let (taken, job) = match found {
        // Answered before the bytes are there.
        Source::Outside(fetched) if !copy.sync => {
            let of = (&RoutingKey::blob(&key), id);
            (None, Some(Box::new(pending::job(front, of, &copy.source, &fetched))))
        }
        found @ (Source::Inside(_) | Source::Outside(_)) => {
            let taken = if matches!(kind, BlobKind::Page { .. }) {
                pages::take(front, &RoutingKey::blob(&key), found).await?
            } else {
                take::take(front, found, &copy.source, Form::Blob).await?
            };
            (Some(taken), None)
        }
    };
    let now = front.env.clock.now();
    let record = CopyRecord {
        id,
        source: copy.source.shown(),
        status: if job.is_some() { CopyStatus::Pending } else { CopyStatus::Success },
        description: None,
        copied: if job.is_some() { 0 } else { len },
        total: len,
        completed: job.is_none().then_some(now),
    };
    let state = if job.is_some() { CopyState::Pending } else { CopyState::Success };
    let tags = tags(copy.tags, &facts);
    let tagged = Tagged::new(&key, &container, &tags);
    let metadata = if copy.metadata.is_empty() { facts.metadata.clone() } else { copy.metadata };
    let checksum = taken.as_ref().filter(|_| copy.sync);
    let checksum = checksum.map(|t| t.md5.map_or(BodyChecksum::Crc64(t.crc64), BodyChecksum::Md5));
    let (content, crc64, hold) = taken.map_or_else(nothing, |t| (t.content, t.crc64, Some(t.hold)));
    let guard = lookup::guard(copy.precondition);
    let encryption = guard.encryption.clone();
    let write = Box::new(PutCopy {
        key,
        guard,
        kind,
        properties: facts.properties.clone(),
        metadata,
        tags,
        tier: copy.tier.map(|tier| TierState::new(tier, now)),
        content,
        crc64,
        copy: Some(Box::new(record)),
        job,
    });
    let answer = match hold {
        Some(hold) => take::commit(front, write, hold).await,
        None => commit::commit(front, write, None).await,
    };
    let change = commit::changed(answer, Subject::Blob)?;
    ops::tags::show(front, tagged).await;
    if state == CopyState::Pending {
        front.copies.begun();
    }
    Ok(with_encryption_header(Reply::BlobCopied { change, id, state, checksum }, &encryption))
}

/// What a pending copy has: no bytes yet.
fn nothing() -> (CopiedContent, Crc64, Option<Hold>) {
    let content = CopiedContent::Whole(NewContent::Inline(Bytes::new()));
    (content, Crc64::EMPTY, None)
}

/// The kind of the destination: an append blob is sealed when its source is, unless the request
/// says otherwise.
fn sealed(kind: BlobKind, seal: Option<bool>) -> Result<BlobKind, Refusal> {
    match (kind, seal) {
        (kind, None) => Ok(kind),
        (BlobKind::Append { blocks, .. }, Some(sealed)) => Ok(BlobKind::Append { blocks, sealed }),
        (kind, Some(false)) => Ok(kind),
        (BlobKind::Block | BlobKind::Page { .. }, Some(true)) => {
            Err(Reason::InvalidBlobType.into())
        }
    }
}

fn fresh_id(front: &FrontEnd) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&front.env.rand.next_u64().to_be_bytes());
    bytes[8..].copy_from_slice(&front.env.rand.next_u64().to_be_bytes());
    Builder::from_random_bytes(bytes).into_uuid()
}

/// Takes over what the request leaves out. The source's MD5 was never verified, so it is not.
fn fill_in(properties: &mut BlobProperties, source: &BlobProperties) {
    let pairs = [
        (&mut properties.content_type, &source.content_type),
        (&mut properties.content_encoding, &source.content_encoding),
        (&mut properties.content_language, &source.content_language),
        (&mut properties.content_disposition, &source.content_disposition),
        (&mut properties.cache_control, &source.cache_control),
    ];
    for (own, other) in pairs {
        if own.is_none() {
            own.clone_from(other);
        }
    }
}

fn tags(option: TagOption, source: &Facts) -> Tags {
    match option {
        TagOption::Replace(tags) => tags,
        TagOption::Copy => source.tags.clone(),
    }
}
