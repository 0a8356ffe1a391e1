//! Makes the bytes of a source ready for a row: shares them where possible, else stores them again.

use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::ingest;
use crate::frontend::ops::copies::frames;
use crate::frontend::ops::copies::frames::Located;
use crate::frontend::rows::RowAccess;
use crate::frontend::source::Inside;
use crate::frontend::source::SharedContent;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::CopiedContent;
use crate::index::FoundContainer;
use crate::index::NewContent;
use crate::index::WriteRequest;
use crate::index::inflight::CopyNote;
use crate::index::inflight::LayerNote;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::CustomerKey;
use crate::types::Encryption;
use crate::types::Md5;

/// The most inline bytes of a block that is joined from several blocks.
const INLINE_BYTES_MAX: usize = 512;

/// Content that a row will name, and the hold that keeps its bytes until that row is committed.
pub(super) struct Taken {
    pub(super) content: CopiedContent,
    /// Of the bytes.
    pub(super) crc64: Crc64,
    /// The CRC-64 that a row keeps; for encrypted content that of an empty body.
    pub(super) kept_crc64: Crc64,
    pub(super) md5: Option<Md5>,
    pub(super) hold: Hold,
}

/// The bytes to take, and the form in which to store them.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The source.
    pub(super) source: &'a CopySource,
    /// The kind of content that the bytes become.
    pub(super) form: Form,
    /// The key under which they are stored.
    pub(super) key: Option<&'a CustomerKey>,
}

/// Keeps bytes from being freed. It is dropped after the commit is answered.
pub(super) enum Hold {
    /// Bytes that other rows name too.
    Shared(CopyNote),
    /// Bytes of this copy alone.
    Stored(Stored),
    /// A layer of pages, which reclaim does not free as long as this is held.
    Layer(LayerNote),
}

/// The length and checksums that the bytes of a source must have.
pub(super) const fn upload(source: &CopySource, len: u64) -> Upload {
    let checksums = ClaimedChecksums { wanted: None, claim: ChecksumClaim::None };
    Upload { framing: Framing::Known { len }, md5: source.md5, crc64: source.crc64, checksums }
}

pub(super) fn check_len(len: u64, len_max: u64) -> Result<(), Refusal> {
    if len <= len_max {
        return Ok(());
    }
    Err(Refusal::new(Reason::RequestBodyTooLarge).detail(Detail::Limit, len_max.to_string()))
}

/// The kind of content that the bytes become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A block: one piece of content.
    Part,
    /// A blob without blocks. The answer has its MD5.
    Whole,
    /// A blob with the source's blocks.
    Blob,
}

/// Takes the source's bytes: by reference where possible, else by storing them again. Content that
/// needs a key to be read or stored is stored again. The exception is a whole blob that stays under
/// the key of its scope, if the answer does not show its checksums.
pub(super) async fn take(
    front: &FrontEnd,
    found: Source,
    wanted: Wanted<'_>,
) -> Result<Taken, Refusal> {
    let Wanted { source, form, key } = wanted;
    let upload = upload(source, found.len());
    if let Source::Inside(inside) = &found
        && may_share(inside, &wanted)
        && let Some(shared) = inside.share(front).await?
    {
        let hold = Hold::Shared(shared.note);
        match shared.content {
            SharedContent::Frames(found) => {
                let mut body = inside.reread(front).await?;
                let Located { content, checksums } =
                    frames::locate(&front.pool, &mut body, &found, &upload, false).await?;
                let (crc64, md5) = (checksums.crc64, checksums.md5);
                let content = CopiedContent::Whole(content);
                return Ok(Taken { content, crc64, kept_crc64: crc64, md5, hold });
            }
            SharedContent::Content(content) if form == Form::Blob || flat(&content).is_some() => {
                let crc64 = crc64(&content, inside.crc64());
                let md5 = if form == Form::Whole || source.md5.is_some() {
                    let mut body = inside.reread(front).await?;
                    ingest::verify(&front.pool, &mut body, &upload, true, |_| {}).await?.md5
                } else {
                    ingest::check_crc64(&upload, crc64)?;
                    None
                };
                return Ok(Taken { content, crc64, kept_crc64: crc64, md5, hold });
            }
            SharedContent::Content(_) => {}
        }
    }
    let mut body = found.body(front).await?;
    let (pool, under) = (&front.pool, Encrypting::new(&front.env, key));
    let ingested = match form {
        Form::Part => ingest::ingest_part(pool, &mut body, &upload, false, under).await?,
        Form::Whole => ingest::ingest(pool, &mut body, &upload, true, under).await?,
        Form::Blob => ingest::ingest(pool, &mut body, &upload, false, under).await?,
    };
    Ok(Taken {
        content: CopiedContent::Whole(ingested.stored.content()),
        crc64: ingested.crc64,
        kept_crc64: ingested.kept_crc64(),
        md5: ingested.md5,
        hold: Hold::Stored(ingested.stored),
    })
}

fn may_share(inside: &Inside, wanted: &Wanted<'_>) -> bool {
    let Some(key) = wanted.key else { return inside.decrypting().is_none() };
    let Some(Encryption::KeyedScope { key_sha256, .. }) = inside.record().under() else {
        return false;
    };
    let shows_checksums =
        wanted.form != Form::Blob || wanted.source.purpose != CopyPurpose::Copy { sync: false };
    key_sha256 == key.sha256() && !shows_checksums
}

/// The checksum of all of it.
pub(super) fn crc64(content: &CopiedContent, whole: Crc64) -> Crc64 {
    match content {
        CopiedContent::Whole(_) | CopiedContent::Pages { .. } => whole,
        CopiedContent::Blocks(blocks) => {
            let mut combiner = Crc64Combiner::default();
            blocks.iter().fold(Crc64::EMPTY, |sum, b| combiner.combine(sum, b.crc64, b.len))
        }
    }
}

/// The content as one piece; `None` if it is partly in rows and partly in extents, or if too much
/// is in rows.
pub(super) fn flat(content: &CopiedContent) -> Option<NewContent> {
    if let CopiedContent::Whole(content) = content {
        return Some(content.clone());
    }
    if let CopiedContent::Blocks(blocks) = content
        && let [block] = blocks.as_slice()
    {
        return Some(block.content.clone());
    }
    let (mut inline, mut locations) = (Vec::new(), Vec::new());
    for piece in content.pieces() {
        match piece {
            NewContent::Inline(bytes) => inline.extend_from_slice(bytes),
            NewContent::Stored(_) | NewContent::Encrypted(..) | NewContent::Authenticated(..) => {
                return None;
            }
            NewContent::Shared(more) => locations.extend_from_slice(more),
        }
    }
    match (inline.len(), locations.len()) {
        (0, 1..) => Some(NewContent::Shared(locations)),
        (0..=INLINE_BYTES_MAX, 0) => Some(NewContent::Inline(inline.into())),
        _ => None,
    }
}

/// Commits the row that names the content, in a task of its own. `container` as in
/// [`commit::commit_into`].
pub(super) async fn commit<W: WriteRequest>(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    write: W,
    hold: Option<Hold>,
) -> Result<W::Reply, index::Error> {
    match hold {
        None => commit::commit_into(rows, container, write, None).await,
        Some(Hold::Stored(stored)) => {
            commit::commit_into(rows, container, write, Some(stored)).await
        }
        Some(Hold::Shared(note)) => commit::commit_into_holding(rows, container, write, note).await,
        Some(Hold::Layer(note)) => commit::commit_into_holding(rows, container, write, note).await,
    }
}
