//! Parts of uploads with the bytes of a named blob.

use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::scope;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ingest::Checksums;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::copies::frames;
use crate::frontend::ops::copies::named_content::ATTEMPTS_MAX;
use crate::frontend::ops::copies::named_content::check_len;
use crate::frontend::ops::copies::named_content::is_shareable;
use crate::frontend::ops::copies::named_content::upload;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::uploads;
use crate::frontend::source;
use crate::frontend::source::Inside;
use crate::frontend::source::Requester;
use crate::frontend::source::Shared;
use crate::frontend::source::SharedContent;
use crate::frontend::state::FrontEnd;
use crate::index::CopiedContent;
use crate::index::NewContent;
use crate::index::StagePart;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::named_copy::CopiedFacts;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::CopyPart;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::ContentTag;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::Md5;

/// The requirements of a part on its source.
struct Wanted<'a> {
    source: &'a NamedSource,
    len_max: u64,
    /// The key of the upload.
    key: Option<CustomerKey>,
    /// The checksum that the upload keeps.
    kept: Option<ChecksumAlgorithm>,
}

/// The bytes of a part, and their checksums.
struct PartContent {
    content: NewContent,
    /// That of nothing for encrypted content.
    crc64: Crc64,
    md5: Option<Md5>,
    named: Option<ChecksumValue>,
    hold: Hold,
}

/// Copies a part.
pub(crate) async fn copy_part(
    front: &FrontEnd,
    requester: Requester<'_>,
    copy: CopyPart,
) -> Result<Reply, Refusal> {
    let CopyPart { upload, number, source, len_max } = copy;
    let account = requester.account;
    let blob = BlobTarget { account, path: upload.path, precondition: upload.precondition };
    // The encryption is that of the upload: the container's default scope does not count.
    let Located { container, blob, mut precondition } = blob.locate(&front.rows).await?;
    let record = uploads::find(front, &blob.key, upload.id).await?;
    scope::fill_of_upload(account, record.blob.under().as_ref(), &mut precondition)?;
    let wanted = Wanted {
        source: &source,
        len_max,
        key: precondition.encryption.key().cloned(),
        kept: record.checksum().map(|kept| kept.algorithm),
    };
    let PartContent { content, crc64, md5, named, hold } =
        take_source(front, requester, &wanted).await?;
    let is_plain = wanted.key.is_none();
    let encryption = lookup::guard(precondition).encryption;
    let write = StagePart {
        key: blob.key,
        upload: upload.id,
        number,
        encryption: encryption.clone(),
        content,
        crc64,
        checksums: if is_plain { uploads::checksums(md5, named) } else { Vec::new() },
    };
    let part = take::commit(&front.rows, Some(container), write, Some(hold)).await;
    let part = part.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    let checksum = part.checksum.or(named.map(|named| named.of_whole()));
    let facts = CopiedFacts {
        last_modified: part.staged,
        version: None,
        source_version: None,
        content_etag: part.tag,
        checksums: checksum.filter(|_| wanted.kept.is_some()).into_iter().collect(),
    };
    Ok(with_encryption_header(Reply::NamedCopied(Box::new(facts)), &encryption))
}

/// Takes the bytes of the source. Starts over if the source is replaced between its look-up and its
/// mark.
async fn take_source(
    front: &FrontEnd,
    requester: Requester<'_>,
    wanted: &Wanted<'_>,
) -> Result<PartContent, Refusal> {
    for _ in 0..ATTEMPTS_MAX {
        let found = source::open_named(front, requester, wanted.source).await?;
        check_len(found.len(), wanted.len_max)?;
        match take_part(front, found, wanted).await {
            // The conditions of the request held when the source was found.
            Err(error) if error.reason == Reason::SourceConditionNotMet => {}
            taken => return taken,
        }
    }
    Err(Reason::ServerBusy.into())
}

async fn take_part(
    front: &FrontEnd,
    found: Inside,
    wanted: &Wanted<'_>,
) -> Result<PartContent, Refusal> {
    if is_shareable(found.record(), wanted.key.as_ref())
        && let Some(Shared { content, note }) = found.share(front).await?
    {
        let hold = Hold::Shared(note);
        match content {
            SharedContent::Frames(frames) => {
                let upload = upload(found.len(), wanted.kept);
                let mut body = found.reread(front).await?;
                let located =
                    frames::locate(&front.pool, &mut body, &frames, &upload, true).await?;
                let Checksums { crc64, md5, named } = located.checksums;
                return Ok(PartContent { content: located.content, crc64, md5, named, hold });
            }
            SharedContent::Content(content) => {
                if let Some(flat) = take::flat(&content) {
                    let crc64 = take::crc64(&content, found.crc64());
                    let known = known(front, &found, &content, wanted).await?;
                    let Known { md5, named } = known;
                    return Ok(PartContent { content: flat, crc64, md5, named, hold });
                }
            }
        }
    }
    let key = wanted.key.as_ref();
    let encrypting = Encrypting::new(&front.env, key);
    let upload = upload(found.len(), wanted.kept);
    let mut body = found.body(front).await?;
    let is_plain = key.is_none();
    let ingested = ingest::ingest_part(&front.pool, &mut body, &upload, is_plain, encrypting);
    let ingested = ingested.await?;
    Ok(PartContent {
        content: ingested.stored.content(),
        crc64: ingested.kept_crc64(),
        md5: ingested.md5,
        named: ingested.named,
        hold: Hold::Stored(ingested.stored),
    })
}

/// Checksums of the bytes of a part.
#[derive(Default)]
struct Known {
    md5: Option<Md5>,
    named: Option<ChecksumValue>,
}

/// The checksums of the wanted bytes, from the rows of the source. The bytes are read only if the
/// upload keeps a checksum that the source does not have.
async fn known(
    front: &FrontEnd,
    found: &Inside,
    content: &CopiedContent,
    wanted: &Wanted<'_>,
) -> Result<Known, Refusal> {
    if wanted.key.is_some() {
        // Rows have no plain checksums of it.
        return Ok(Known::default());
    }
    let crc64 = take::crc64(content, found.crc64());
    let kept = kept(found, content);
    let of = |algorithm: ChecksumAlgorithm| {
        let mut all = kept.iter().filter(|one| one.kind == ChecksumKind::FullObject);
        let found = all.find(|one| one.algorithm == algorithm)?;
        ChecksumValue::new(algorithm, &found.digest)
    };
    let md5 = of(ChecksumAlgorithm::Md5);
    let md5 = md5.and_then(|md5| Some(Md5::from_bytes(md5.digest().try_into().ok()?)));
    let named = match wanted.kept {
        None => None,
        Some(ChecksumAlgorithm::Crc64Nvme) => Some(crc64.into()),
        Some(algorithm) => match of(algorithm) {
            Some(named) => Some(named),
            None => {
                let upload = upload(found.len(), wanted.kept);
                let mut body = found.reread(front).await?;
                let read = ingest::verify(&front.pool, &mut body, &upload, true, |_| {}).await?;
                return Ok(Known { md5: read.md5, named: read.named });
            }
        },
    };
    Ok(Known { md5, named })
}

/// The checksums that rows keep of exactly the wanted bytes; an MD5 among them is the tag.
fn kept(found: &Inside, content: &CopiedContent) -> Vec<ContentChecksum> {
    let record = found.record();
    let mut kept = Vec::new();
    if let CopiedContent::Blocks(blocks) = content
        && let [block] = blocks.as_slice()
    {
        kept.extend_from_slice(&block.checksums);
    }
    if found.len() == record.len {
        let fields = record.fields.as_ref();
        kept.extend(fields.into_iter().flat_map(|fields| &fields.checksums).cloned());
        if let Some(ContentTag::Md5(md5)) = record.content_tag() {
            kept.push(md5.into());
        }
    }
    kept
}
