//! Copies of named blobs of the same account.

use crate::frontend::commit;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops;
use crate::frontend::ops::copies::named_content;
use crate::frontend::ops::copies::named_content::ATTEMPTS_MAX;
use crate::frontend::ops::copies::named_content::CopiedSource;
use crate::frontend::ops::copies::named_content::Wanted;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::source;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::index::BlobRecord;
use crate::index::NewBlobFields;
use crate::index::PutCopy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::copy::TagOption;
use crate::protocol::model::named_copy::CopiedFacts;
use crate::protocol::model::named_copy::CopiedProperties;
use crate::protocol::model::named_copy::CopyNamed;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::ContentEtag;
use crate::types::ContentMd5;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::TierState;

/// Makes a block blob from a blob of the same account.
pub(crate) async fn copy_named(
    front: &FrontEnd,
    requester: Requester<'_>,
    copy: CopyNamed,
) -> Result<Reply, Refusal> {
    let blob =
        BlobTarget { account: requester.account, path: copy.path, precondition: copy.precondition };
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let wanted = Wanted {
        source: &copy.source,
        len_max: copy.len_max,
        key: precondition.encryption.key().cloned(),
        checksum: copy.checksum,
    };
    let CopiedSource { source, content, hold, crc64, md5, plain_md5, tag, checksums, shown } =
        take_source(front, requester, &wanted).await?;
    let tags = match copy.tags {
        TagOption::Replace(tags) => tags,
        TagOption::Copy if !source.tags.is_empty() && !copy.may_copy_tags => {
            return Err(Reason::AuthorizationPermissionMismatch.into());
        }
        TagOption::Copy => source.tags.clone(),
    };
    let described = Described::new(&source, copy.properties, copy.object);
    let tagged = Tagged::new(&blob.key, &container.name, &tags);
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let content_tag = tag.map(|tag| tag.beside(md5.plain()));
    let write = Box::new(PutCopy {
        key: blob.key,
        guard,
        kind: BlobKind::Block,
        properties: BlobProperties { content_md5: md5, ..described.properties },
        metadata: described.metadata,
        tags,
        tier: copy.tier.map(|tier| TierState::new(tier, front.env.clock.now())),
        content,
        crc64,
        copy: None,
        fields: NewBlobFields { content_tag, checksums, object: described.object.if_any() },
        increment: None,
        job: None,
    });
    let len = source.len;
    let is_plain = wanted.key.is_none();
    let answer = take::commit(&front.rows, Some(container), write, Some(hold)).await;
    let change = commit::changed(answer, Subject::Blob)?;
    ops::tags::update_index(&front.rows, tagged).await;
    let content_etag = tag.and_then(|tag| tag.etag(plain_md5)).unwrap_or_else(|| match is_plain {
        true => ContentEtag::of_checksum(crc64, len, 1),
        false => ContentEtag::of_commit(change.etag, len, 1),
    });
    let last_modified = change.last_modified;
    let (version, source_version) = (change.version, source.version());
    let facts =
        CopiedFacts { last_modified, version, source_version, content_etag, checksums: shown };
    Ok(with_encryption_header(Reply::NamedCopied(Box::new(facts)), &encryption))
}

/// Takes the bytes of the source. Starts over if the source is replaced between its look-up and its
/// mark.
///
/// # Errors
/// `ServerBusy` when the source is replaced again and again; those of the source.
async fn take_source(
    front: &FrontEnd,
    requester: Requester<'_>,
    wanted: &Wanted<'_>,
) -> Result<CopiedSource, Refusal> {
    for _ in 0..ATTEMPTS_MAX {
        let found = source::open_named(front, requester, wanted.source).await?;
        match named_content::take(front, found, wanted).await {
            // The conditions of the request held when the source was found.
            Err(error) if error.reason == Reason::SourceConditionNotMet => {}
            taken => return taken,
        }
    }
    Err(Reason::ServerBusy.into())
}

/// The properties that describe the content of the destination.
struct Described {
    properties: BlobProperties,
    metadata: Metadata,
    object: ObjectProperties,
}

impl Described {
    fn new(source: &BlobRecord, properties: CopiedProperties, object: ObjectProperties) -> Self {
        match properties {
            CopiedProperties::Replace { properties, metadata } => {
                Self { properties: *properties, metadata, object }
            }
            CopiedProperties::Keep => Self {
                properties: BlobProperties {
                    content_md5: ContentMd5::Absent,
                    ..source.properties.clone()
                },
                metadata: source.metadata.clone(),
                object: ObjectProperties {
                    expires: source.fields.as_ref().and_then(|fields| fields.expires.clone()),
                    ..object
                },
            },
        }
    }
}
