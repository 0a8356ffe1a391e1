//! The content of a copy from a named source: the source's own bytes if source and destination are
//! under the same key or none, else bytes that are stored again.

use crate::frontend::encrypt;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::ingest;
use crate::frontend::ops::blobs;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::source::Inside;
use crate::frontend::source::Shared;
use crate::frontend::source::SharedContent;
use crate::frontend::state::FrontEnd;
use crate::index::BlobRecord;
use crate::index::CopiedContent;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::ContentMd5;
use crate::types::ContentTag;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::Md5;

/// How often a copy starts over when its source is replaced meanwhile.
pub(super) const ATTEMPTS_MAX: u32 = 5;

/// The requirements of a copy on its source.
pub(super) struct Wanted<'a> {
    /// The source.
    pub(super) source: &'a NamedSource,
    /// The longest source, bytes.
    pub(super) len_max: u64,
    /// The key of the destination.
    pub(super) key: Option<CustomerKey>,
    /// A checksum of the whole content that the destination must have.
    pub(super) checksum: Option<ChecksumAlgorithm>,
}

/// A source and its bytes, as the row of the destination will have them.
pub(super) struct CopiedSource {
    /// The row of the source.
    pub(super) source: BlobRecord,
    /// The bytes.
    pub(super) content: CopiedContent,
    /// Keeps the bytes from being freed until the row is committed.
    pub(super) hold: Hold,
    /// Their checksum; for encrypted content that of an empty body.
    pub(super) crc64: Crc64,
    /// Content-MD5, as the row keeps it.
    pub(super) md5: ContentMd5,
    /// The MD5 that was computed of the bytes, if it was.
    pub(super) plain_md5: Option<Md5>,
    /// The source of S3's ETag; `None` if it is derived.
    pub(super) tag: Option<ContentTag>,
    /// Checksums, as the row keeps them.
    pub(super) checksums: Vec<ContentChecksum>,
    /// Checksums, as the sender sees them.
    pub(super) shown: Vec<ContentChecksum>,
}

/// Takes the bytes of a source.
///
/// # Errors
/// `InvalidInput` when there are too many; `SourceConditionNotMet` when the source is not what it
/// was when it was found.
pub(super) async fn take(
    front: &FrontEnd,
    found: Inside,
    wanted: &Wanted<'_>,
) -> Result<CopiedSource, Refusal> {
    check_len(found.len(), wanted.len_max)?;
    if is_shareable(found.record(), wanted.key.as_ref())
        && let Some(Shared { content: SharedContent::Content(content), note }) =
            found.share(front).await?
    {
        return refer(front, &found, Referred { content, hold: Hold::Shared(note) }, wanted).await;
    }
    store(front, found, wanted).await
}

/// Refuses a source that is too long.
///
/// # Errors
/// `InvalidInput`.
pub(super) fn check_len(len: u64, len_max: u64) -> Result<(), Refusal> {
    if len <= len_max {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidInput).message(format!(
        "The specified copy source is larger than the maximum allowable size for a copy source: \
         {len_max}"
    )))
}

/// Whether a block blob under this key, or under none, may have the bytes of the source.
pub(super) fn is_shareable(source: &BlobRecord, key: Option<&CustomerKey>) -> bool {
    let under = source.under().and_then(|under| under.key_sha256());
    let has_blocks = match source.kind {
        BlobKind::Block | BlobKind::Append { .. } => true,
        BlobKind::Page { .. } => false,
    };
    has_blocks && under == key.map(CustomerKey::sha256)
}

/// Content that the source has marked as shared.
struct Referred {
    content: CopiedContent,
    hold: Hold,
}

/// Refers to the bytes of the source. They are read only for a checksum that the source does not
/// have.
async fn refer(
    front: &FrontEnd,
    found: &Inside,
    referred: Referred,
    wanted: &Wanted<'_>,
) -> Result<CopiedSource, Refusal> {
    let source = found.record().clone();
    let mut opened = source.clone();
    encrypt::decrypt_checksums(found.decrypting(), &mut opened)?;
    let shown = opened.fields.map(|fields| fields.checksums).unwrap_or_default();
    let kept = source.fields.as_ref().map(|fields| fields.checksums.clone()).unwrap_or_default();
    let crc64 = source.content_crc64();
    let Checksums { kept, shown } = match wanted.checksum {
        None => Checksums { kept, shown },
        Some(algorithm) if has(&shown, algorithm) => Checksums { kept, shown },
        Some(algorithm) => {
            let in_row = crc64.filter(|_| algorithm == ChecksumAlgorithm::Crc64Nvme);
            let value = match in_row {
                Some(crc64) => crc64.into(),
                None => digest(front, found, algorithm).await?,
            };
            checksums(front, wanted, Computed { named: Some(value), crc64: source.crc64 })
        }
    };
    let of_row = crc64.filter(|_| shown.is_empty()).map(ChecksumValue::from);
    let shown = if let Some(value) = of_row { vec![value.of_whole()] } else { shown };
    Ok(CopiedSource {
        content: referred.content,
        hold: referred.hold,
        crc64: source.crc64,
        md5: source.properties.content_md5.clone(),
        plain_md5: None,
        tag: source.content_tag(),
        checksums: kept,
        shown,
        source,
    })
}

/// Whether one of the checksums is of the whole content by this algorithm.
fn has(checksums: &[ContentChecksum], algorithm: ChecksumAlgorithm) -> bool {
    checksums.iter().any(|one| one.algorithm == algorithm && one.kind == ChecksumKind::FullObject)
}

/// Reads the source for a checksum.
async fn digest(
    front: &FrontEnd,
    found: &Inside,
    algorithm: ChecksumAlgorithm,
) -> Result<ChecksumValue, Refusal> {
    let upload = upload(found.len(), Some(algorithm));
    let mut body = found.reread(front).await?;
    let checksums = ingest::verify(&front.pool, &mut body, &upload, false, |_| {}).await?;
    checksums.named.ok_or_else(|| Reason::InternalError.into())
}

/// A body of `len` bytes, for which a checksum is computed.
pub(super) const fn upload(len: u64, wanted: Option<ChecksumAlgorithm>) -> Upload {
    let checksums = ClaimedChecksums { wanted, claim: ChecksumClaim::None };
    Upload { framing: Framing::Known { len }, md5: None, crc64: None, checksums }
}

/// Stores the bytes of the source once more.
async fn store(
    front: &FrontEnd,
    found: Inside,
    wanted: &Wanted<'_>,
) -> Result<CopiedSource, Refusal> {
    let source = found.record().clone();
    let of_source = source.fields.as_ref().and_then(|fields| fields.checksums.first());
    let algorithm = wanted.checksum.or(of_source.map(|checksum| checksum.algorithm));
    let upload = upload(found.len(), algorithm);
    let key = wanted.key.as_ref();
    let encrypting = Encrypting::new(&front.env, key);
    let mut body = found.body(front).await?;
    let ingested = ingest::ingest(&front.pool, &mut body, &upload, true, encrypting).await?;
    let md5 = ingested.md5.ok_or(Reason::InternalError)?;
    let mut properties =
        BlobProperties { content_md5: Some(md5).into(), ..BlobProperties::default() };
    encrypt::encrypt_md5(&front.env, key, &mut properties);
    let computed = Computed { named: ingested.named, crc64: ingested.crc64 };
    let Checksums { kept, shown } = checksums(front, wanted, computed);
    Ok(CopiedSource {
        content: CopiedContent::Whole(ingested.stored.content()),
        crc64: ingested.kept_crc64(),
        md5: properties.content_md5,
        plain_md5: Some(md5),
        tag: Some(blobs::content_tag(front, key)),
        checksums: kept,
        shown,
        hold: Hold::Stored(ingested.stored),
        source,
    })
}

/// Checksums that were computed of the whole content.
#[derive(Clone, Copy)]
struct Computed {
    /// The one that is wanted.
    named: Option<ChecksumValue>,
    crc64: Crc64,
}

/// Checksums as a row keeps them, and as clients see them.
struct Checksums {
    kept: Vec<ContentChecksum>,
    shown: Vec<ContentChecksum>,
}

fn checksums(front: &FrontEnd, wanted: &Wanted<'_>, computed: Computed) -> Checksums {
    let Computed { named, crc64 } = computed;
    let kept = encrypt::kept_checksums(&front.env, wanted.key.as_ref(), named, crc64);
    let shown = vec![named.unwrap_or_else(|| crc64.into()).of_whole()];
    Checksums { kept, shown }
}
