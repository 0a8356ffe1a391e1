//! Blobs and blocks from URLs.

use uuid::Builder;
use uuid::Uuid;

use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ops;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::service::FrontEnd;
use crate::frontend::source;
use crate::frontend::source::Facts;
use crate::frontend::source::Requester;
use crate::frontend::source::Source;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::CopiedContent;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::NewContent;
use crate::index::PutCopy;
use crate::index::StageBlock;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::inflight::CopyGuard;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Precondition;
use crate::protocol::Reply;
use crate::protocol::copy::CopyBlob;
use crate::protocol::copy::CopySource;
use crate::protocol::copy::CopyState;
use crate::protocol::copy::PutBlobFromUrl;
use crate::protocol::copy::TagOption;
use crate::protocol::operation::BlobPath;
use crate::protocol::operation::Upload;
use crate::protocol::reply::BodyChecksum;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::Md5;
use crate::types::Tags;
use crate::types::TierState;

/// Bytes of a source that Put Blob From URL takes.
const PUT_BYTES_MAX: u64 = 5_000 << 20;
/// Bytes of a source that Put Block From URL takes.
const BLOCK_BYTES_MAX: u64 = 4_000 << 20;
/// Bytes of a source that a copy that is waited for takes.
const SYNC_BYTES_MAX: u64 = 256 << 20;
/// Inlined bytes that a block put together from others may have.
const INLINE_BYTES_MAX: usize = 512;

/// Who asks, for which account.
pub(crate) type Asking<'a> = (Requester<'a>, &'a Account);

/// Content on its way to a row, and what keeps it there until it has arrived.
struct Taken {
    content: CopiedContent,
    crc64: Crc64,
    md5: Option<Md5>,
    hold: Hold,
}

/// What is let go of once the commit was answered.
enum Hold {
    /// Bytes that other rows name too.
    Shared(CopyGuard),
    /// Bytes of this copy alone.
    Stored(Stored),
}

/// Put Block From URL.
pub(crate) async fn put_block(
    front: &FrontEnd,
    asking: Asking<'_>,
    (path, id, precondition): (BlobPath, BlockId, Precondition),
    source: &CopySource,
) -> Result<Reply, Error> {
    let key = ops::blob_key(front, asking.1, path).await?;
    let found = source::open(front, asking, source).await?;
    if found.len() == 0 {
        return Err(Error::new(ErrorCode::InvalidRange).message("The source has no bytes to take."));
    }
    check_len(found.len(), BLOCK_BYTES_MAX)?;
    let taken = take(front, found, source, Form::Part).await?;
    let content = flat(&taken.content).ok_or(ErrorCode::InternalError)?;
    let checksum = taken.md5.map_or(BodyChecksum::Crc64(taken.crc64), BodyChecksum::Md5);
    let guard = ops::guard(precondition);
    let write = Write::StageBlock(StageBlock { key, guard, id, content, crc64: taken.crc64 });
    match commit(front, write, taken.hold).await {
        Ok(_) => Ok(Reply::BlockPut(checksum)),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Put Blob From URL.
pub(crate) async fn put_blob(
    front: &FrontEnd,
    asking: Asking<'_>,
    put: PutBlobFromUrl,
) -> Result<Reply, Error> {
    let container = put.path.container.clone();
    let key = ops::blob_key(front, asking.1, put.path).await?;
    let found = source::open(front, asking, &put.source).await?;
    check_len(found.len(), PUT_BYTES_MAX)?;
    let facts = found.facts();
    let taken = take(front, found, &put.source, Form::Whole).await?;
    let md5 = taken.md5.ok_or(ErrorCode::InternalError)?;
    let mut properties = put.properties;
    if put.source_properties {
        fill_in(&mut properties, &facts.properties);
    }
    properties.content_md5 = properties.content_md5.or(Some(md5));
    let content = flat(&taken.content).map_or(taken.content, CopiedContent::Whole);
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
    let change = ops::changed(commit(front, write, taken.hold).await, Subject::Blob)?;
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
    if matches!(facts.kind, BlobKind::Page { .. }) {
        return Err(Error::new(ErrorCode::NotImplemented)
            .message("Blockyard does not copy page blobs yet."));
    }
    let len = found.len();
    let taken = take(front, found, &copy.source, Form::Blob).await?;
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
    let change = ops::changed(commit(front, write, taken.hold).await, Subject::Blob)?;
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

fn check_len(len: u64, len_max: u64) -> Result<(), Error> {
    if len <= len_max {
        return Ok(());
    }
    Err(Error::new(ErrorCode::RequestBodyTooLarge).detail("MaxLimit", len_max.to_string()))
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

/// What the content becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A block: one piece of content.
    Part,
    /// A blob without blocks, whose MD5 is told.
    Whole,
    /// A blob with the source's blocks.
    Blob,
}

/// Takes the source's bytes: by reference where they can be shared, else by storing them once more.
async fn take(
    front: &FrontEnd,
    found: Source,
    source: &CopySource,
    form: Form,
) -> Result<Taken, Error> {
    let upload =
        Upload { len: found.len(), message_len: None, md5: source.md5, crc64: source.crc64 };
    if let Source::Inside(inside) = &found
        && let Some(shared) = inside.share(front).await?
    {
        let crc64 = crc64(&shared.content, inside.crc64());
        if form == Form::Blob || flat(&shared.content).is_some() {
            let md5 = if form == Form::Whole || source.md5.is_some() {
                let mut body = inside.again(front).await?;
                Some(ingest::verify(&mut body, &upload).await?)
            } else {
                ingest::check_crc64(&upload, crc64)?;
                None
            };
            let hold = Hold::Shared(shared.guard);
            return Ok(Taken { content: shared.content, crc64, md5, hold });
        }
    }
    let mut body = found.body(front).await?;
    let ingested = match form {
        Form::Part => ingest::ingest_part(&front.pool, &mut body, &upload, None).await?,
        Form::Whole => ingest::ingest(&front.pool, &mut body, &upload, true, None).await?,
        Form::Blob => ingest::ingest(&front.pool, &mut body, &upload, false, None).await?,
    };
    Ok(Taken {
        content: CopiedContent::Whole(ingested.stored.content()),
        crc64: ingested.crc64,
        md5: ingested.md5,
        hold: Hold::Stored(ingested.stored),
    })
}

/// The checksum of all of it.
fn crc64(content: &CopiedContent, whole: Crc64) -> Crc64 {
    match content {
        CopiedContent::Whole(_) => whole,
        CopiedContent::Blocks(blocks) => {
            let mut combiner = Crc64Combiner::default();
            blocks.iter().fold(Crc64::EMPTY, |sum, b| combiner.combine(sum, b.crc64, b.len))
        }
    }
}

/// The content as one piece; `None` when some of it lies in rows and some in extents, or too much in rows.
fn flat(content: &CopiedContent) -> Option<NewContent> {
    if let CopiedContent::Whole(content) = content {
        return Some(content.clone());
    }
    let (mut inline, mut locations) = (Vec::new(), Vec::new());
    for piece in content.pieces() {
        match piece {
            NewContent::Inline(bytes) => inline.extend_from_slice(bytes),
            NewContent::Stored(_) | NewContent::Encrypted(..) => return None,
            NewContent::Shared(more) => locations.extend_from_slice(more),
        }
    }
    match (inline.len(), locations.len()) {
        (0, 1..) => Some(NewContent::Shared(locations)),
        (0..=INLINE_BYTES_MAX, 0) => Some(NewContent::Inline(inline.into())),
        _ => None,
    }
}

/// Commits the row that names the content, in a task of its own.
async fn commit(front: &FrontEnd, write: Write, hold: Hold) -> Result<WriteReply, index::Error> {
    let guard = match hold {
        Hold::Stored(stored) => return ops::commit(front, write, Some(stored)).await,
        Hold::Shared(guard) => guard,
    };
    let router = std::sync::Arc::clone(&front.router);
    let task = front.env.tasks.spawn("commit copy", async move {
        let answer = router.write(write).await;
        drop(guard);
        answer
    });
    task.await.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())))
}
