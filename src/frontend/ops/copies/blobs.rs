//! Blobs from URLs.

use uuid::Builder;
use uuid::Uuid;

use crate::frontend::accounts::Account;
use crate::frontend::errors::Subject;
use crate::frontend::ops;
use crate::frontend::ops::copies::Asking;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::service::FrontEnd;
use crate::frontend::source;
use crate::frontend::source::Facts;
use crate::index::CopiedContent;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::PutCopy;
use crate::index::Write;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Precondition;
use crate::protocol::Reply;
use crate::protocol::copy::CopyBlob;
use crate::protocol::copy::CopyState;
use crate::protocol::copy::PutBlobFromUrl;
use crate::protocol::copy::TagOption;
use crate::protocol::operation::BlobPath;
use crate::protocol::reply::BodyChecksum;
use crate::types::BlobKind;
use crate::types::BlobProperties;
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
    put: PutBlobFromUrl,
) -> Result<Reply, Error> {
    let container = put.path.container.clone();
    let key = ops::blob_key(front, asking.1, put.path).await?;
    let found = source::open(front, asking, &put.source).await?;
    take::check_len(found.len(), PUT_BYTES_MAX)?;
    let facts = found.facts();
    let taken = take::take(front, found, &put.source, Form::Whole).await?;
    let md5 = taken.md5.ok_or(ErrorCode::InternalError)?;
    let mut properties = put.properties;
    if put.source_properties {
        fill_in(&mut properties, &facts.properties);
    }
    properties.content_md5 = properties.content_md5.or(Some(md5));
    let content = take::flat(&taken.content).map_or(taken.content, CopiedContent::Whole);
    let tags = tags(put.tags, &facts);
    let tagged = Tagged::new(&key, &container, &tags);
    let write = Write::PutCopy(Box::new(PutCopy {
        key,
        guard: ops::guard(put.precondition),
        kind: BlobKind::Block,
        properties,
        metadata: put.metadata,
        tags,
        tier: put.tier.map(|tier| TierState::new(tier, front.env.clock.now())),
        content,
        crc64: taken.crc64,
        copy: None,
    }));
    let change = ops::changed(take::commit(front, write, taken.hold).await, Subject::Blob)?;
    ops::tags::show(front, tagged).await;
    Ok(Reply::BlobPut { change, md5: Some(md5), crc64: put.source.crc64 })
}

/// Copy Blob, Copy Blob From URL.
pub(crate) async fn copy(
    front: &FrontEnd,
    asking: Asking<'_>,
    copy: CopyBlob,
) -> Result<Reply, Error> {
    let container = copy.path.container.clone();
    let key = ops::blob_key(front, asking.1, copy.path).await?;
    let found = source::open(front, asking, &copy.source).await?;
    if copy.sync && found.len() > SYNC_BYTES_MAX {
        return Err(Error::new(ErrorCode::CannotVerifyCopySource).status(409).message(
            "A copy that is waited for takes at most 256 MiB; leave x-ms-requires-sync out.",
        ));
    }
    let facts = found.facts();
    let len = found.len();
    let taken = if matches!(facts.kind, BlobKind::Page { .. }) {
        pages::take(front, &key, found).await?
    } else {
        take::take(front, found, &copy.source, Form::Blob).await?
    };
    let id = fresh_id(front);
    let tags = tags(copy.tags, &facts);
    let tagged = Tagged::new(&key, &container, &tags);
    let metadata = if copy.metadata.is_empty() { facts.metadata.clone() } else { copy.metadata };
    let write = Write::PutCopy(Box::new(PutCopy {
        key,
        guard: ops::guard(copy.precondition),
        kind: facts.kind,
        properties: facts.properties.clone(),
        metadata,
        tags,
        tier: copy.tier.map(|tier| TierState::new(tier, front.env.clock.now())),
        content: taken.content,
        crc64: taken.crc64,
        copy: Some(Box::new(CopyRecord {
            id,
            source: copy.source.shown(),
            status: CopyStatus::Success,
            description: None,
            copied: len,
            total: len,
            completed: Some(front.env.clock.now()),
        })),
    }));
    let change = ops::changed(take::commit(front, write, taken.hold).await, Subject::Blob)?;
    ops::tags::show(front, tagged).await;
    let checksum = taken.md5.map_or(BodyChecksum::Crc64(taken.crc64), BodyChecksum::Md5);
    let checksum = copy.sync.then_some(checksum);
    Ok(Reply::BlobCopied { change, id, state: CopyState::Success, checksum })
}

/// Abort Copy Blob: copies end with the request that asked for them, so none is ever pending.
pub(crate) async fn abort(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: Precondition,
) -> Result<Reply, Error> {
    ops::content::facts(front, account, path, precondition).await?;
    Err(ErrorCode::NoPendingCopyOperation.into())
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
