//! Put Blob From URL, Copy Blob, Copy Blob From URL.

use std::time::Duration;

use bytes::Bytes;
use uuid::Builder;
use uuid::Uuid;

use crate::frontend::commit;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::encrypt_md5;
use crate::frontend::encrypt::kept_checksums;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::ops;
use crate::frontend::ops::blobs::content_tag;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::pending;
use crate::frontend::ops::copies::pending::Destination;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::copies::take::Taken;
use crate::frontend::ops::copies::take::Wanted;
use crate::frontend::ops::tags::Tagged;
use crate::frontend::source;
use crate::frontend::source::Facts;
use crate::frontend::source::Requester;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::index::CopiedContent;
use crate::index::CopyJob;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::Guard;
use crate::index::NewBlobFields;
use crate::index::NewContent;
use crate::index::PutCopy;
use crate::index::ReadBlob;
use crate::protocol::model::Hint;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::copy::CopyBlob;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::CopyState;
use crate::protocol::model::copy::PutBlobFromUrl;
use crate::protocol::model::copy::TagOption;
use crate::types::AccessTier;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Conditions;
use crate::types::ContentEtag;
use crate::types::ContentMd5;
use crate::types::ContentTag;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::EtagMatch;
use crate::types::RehydratePriority;
use crate::types::Rehydration;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// The longest source of Put Blob From URL, in bytes.
const PUT_BYTES_MAX: u64 = 5_000 << 20;
/// The longest source of a synchronous copy, in bytes.
const SYNC_BYTES_MAX: u64 = 256 << 20;

/// Put Blob From URL.
pub(crate) async fn put_blob(
    front: &FrontEnd,
    requester: Requester<'_>,
    put: PutBlobFromUrl,
) -> Result<Reply, Refusal> {
    let account = requester.account;
    let blob = BlobTarget { account, path: put.path, precondition: put.precondition };
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let found = source::open(front, requester, &put.source).await?;
    take::check_len(found.len(), PUT_BYTES_MAX)?;
    let facts = found.facts();
    let key = precondition.encryption.key().cloned();
    let (key, form) = (key.as_ref(), Form::Whole);
    let taken = take::take(front, found, Wanted { source: &put.source, form, key }).await?;
    let md5 = taken.md5.ok_or(Reason::InternalError)?;
    let mut properties = put.properties;
    if put.source_properties {
        fill_in(&mut properties, &facts.properties);
    }
    if properties.content_md5 == ContentMd5::Absent {
        properties.content_md5 = ContentMd5::Plain(md5);
    }
    let content = take::flat(&taken.content).map_or(taken.content, CopiedContent::Whole);
    let tags = tags(put.tags, &facts);
    let tagged = Tagged::new(&blob.key, &container.name, &tags);
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let content_tag = Some(match key {
        None => ContentTag::Md5(md5).beside(properties.content_md5.plain()),
        Some(_) => content_tag(front, key),
    });
    let checksums = kept_checksums(&front.env, key, None, taken.crc64);
    encrypt_md5(&front.env, key, &mut properties);
    let write = Box::new(PutCopy {
        key: blob.key,
        guard,
        kind: BlobKind::Block,
        properties,
        metadata: put.metadata,
        tags,
        tier: put.tier.map(|tier| TierState::new(tier, front.env.clock.now())),
        content,
        crc64: taken.kept_crc64,
        copy: None,
        fields: NewBlobFields { content_tag, checksums, object: None },
        increment: None,
        job: None,
    });
    let answer = take::commit(&front.rows, Some(container), write, Some(taken.hold)).await;
    let change = commit::changed(answer, Subject::Blob)?;
    ops::tags::update_index(&front.rows, tagged).await;
    let reply = Reply::BlobPut {
        change,
        checksums: Some(WrittenChecksums { crc64: taken.crc64, md5: put.source.md5 }),
        content_etag: ContentEtag::md5(md5),
        checksum: taken.crc64.into(),
    };
    Ok(with_encryption_header(reply, &encryption))
}

/// The parts of a copy whose row can be committed.
struct Prepared {
    content: CopiedContent,
    crc64: Crc64,
    /// The checksums that a synchronous copy answers with.
    checksums: Option<WrittenChecksums>,
    hold: Option<Hold>,
    /// The work that is left, if the bytes are copied later.
    job: Option<Box<CopyJob>>,
}

impl Prepared {
    /// A copy whose bytes are there.
    fn complete(taken: Taken) -> Self {
        let checksums = WrittenChecksums { crc64: taken.crc64, md5: taken.md5 };
        Self {
            content: taken.content,
            crc64: taken.kept_crc64,
            checksums: Some(checksums),
            hold: Some(taken.hold),
            job: None,
        }
    }

    /// A copy without bytes, which `job` copies later.
    fn pending(job: CopyJob) -> Self {
        Self {
            content: CopiedContent::Whole(NewContent::Inline(Bytes::new())),
            crc64: Crc64::EMPTY,
            checksums: None,
            hold: None,
            job: Some(Box::new(job)),
        }
    }

    const fn is_pending(&self) -> bool {
        self.job.is_some()
    }

    /// The destination's record of the copy, of a source of `total` bytes.
    fn record(&self, id: Uuid, source: &CopySource, total: u64, now: Timestamp) -> CopyRecord {
        let pending = self.is_pending();
        CopyRecord {
            id,
            source: source.shown(),
            status: if pending { CopyStatus::Pending } else { CopyStatus::Success },
            description: None,
            copied: if pending { 0 } else { total },
            total,
            completed: (!pending).then_some(now),
        }
    }
}

/// Copy Blob, Copy Blob From URL.
pub(crate) async fn copy(
    front: &FrontEnd,
    requester: Requester<'_>,
    copy: CopyBlob,
) -> Result<Reply, Refusal> {
    let account = requester.account;
    let blob = BlobTarget { account, path: copy.path, precondition: copy.precondition };
    let Located { container, blob, precondition } = blob.locate_for_content(&front.rows).await?;
    let is_exclusive = precondition.conditions.if_none_match == Some(EtagMatch::Any);
    let absent = is_exclusive.then_some(&blob);
    let wanted = WantedSource { source: &copy.source, sync: copy.sync, absent };
    let found = open(front, requester, wanted).await?;
    let facts = found.facts();
    let kind = kind_of_copy(facts.kind, copy.seal)?;
    let (id, len) = (fresh_id(front), found.len());
    let routing = RoutingKey::blob(&blob.key);
    let own_key = precondition.encryption.key().cloned();
    let key = own_key.as_ref();
    let prepared = match found {
        // Answered before the bytes are copied. Under a scope with a key the request waits for
        // them, because the work row does not have the key.
        Source::Outside(fetched) if !copy.sync && key.is_none() => {
            let destination = Destination { blob: &routing, copy: id };
            Prepared::pending(pending::job(front, destination, &copy.source, &fetched))
        }
        found @ (Source::Inside(_) | Source::Outside(_))
            if matches!(kind, BlobKind::Page { .. }) =>
        {
            Prepared::complete(pages::take(front, &routing, found, key).await?)
        }
        found @ (Source::Inside(_) | Source::Outside(_)) => {
            let wanted = Wanted { source: &copy.source, form: Form::Blob, key };
            Prepared::complete(take::take(front, found, wanted).await?)
        }
    };
    let now = front.env.clock.now();
    let record = prepared.record(id, &copy.source, len, now);
    let pending = prepared.is_pending();
    let checksums = prepared.checksums.filter(|_| copy.sync);
    let tags = tags(copy.tags, &facts);
    let tagged = Tagged::new(&blob.key, &container.name, &tags);
    let guard = lookup::guard(precondition);
    let (by_date, encryption) = (is_only_by_date(&guard), guard.encryption.clone());
    let fields = match key {
        None => fields(&facts, pending),
        Some(_) => fields_under_key(front, kind, key),
    };
    let properties = properties_under(front, key, facts.properties);
    let rehydration = facts.archived.then_some((copy.priority, front.config.rehydration));
    let tier = copy.tier.map(|tier| tier_of_copy(tier, rehydration, now));
    let write = Box::new(PutCopy {
        key: blob.key,
        guard,
        kind,
        properties,
        metadata: if copy.metadata.is_empty() { facts.metadata } else { copy.metadata },
        tags,
        tier,
        content: prepared.content,
        crc64: prepared.crc64,
        copy: Some(Box::new(record)),
        fields,
        increment: None,
        job: prepared.job,
    });
    let answer = take::commit(&front.rows, Some(container), write, prepared.hold).await;
    let change = commit::changed(answer, Subject::Blob);
    let change = change.map_err(|refused| explain_target(refused, by_date))?;
    ops::tags::update_index(&front.rows, tagged).await;
    if pending {
        front.copies.begun();
    }
    let state = if pending { CopyState::Pending } else { CopyState::Success };
    Ok(with_encryption_header(Reply::BlobCopied { change, id, state, checksums }, &encryption))
}

/// The source of a copy, and the conditions that are checked before it is read.
struct WantedSource<'a> {
    source: &'a CopySource,
    /// Whether the client waits for the copy.
    sync: bool,
    /// The blob that must not be there.
    absent: Option<&'a BlobVersion>,
}

/// Opens the source of a copy. If the destination must not exist, it is looked up before bytes are
/// taken. For a sender that may not overwrite, the look-up comes even before that of the source,
/// whose refusal would hide the conflict. If the request has the condition itself, the source is
/// looked up first: `object_store` expects 404 for a missing source.
async fn open(
    front: &FrontEnd,
    requester: Requester<'_>,
    wanted: WantedSource<'_>,
) -> Result<Source, Refusal> {
    let WantedSource { source, sync, absent } = wanted;
    let (early, late) = if requester.create_only { (absent, None) } else { (None, absent) };
    if let Some(blob) = early {
        check_absent(front, blob).await?;
    }
    let found = source::open(front, requester, source).await?;
    check_wait(sync, found.len())?;
    if let Some(blob) = late {
        check_absent(front, blob).await?;
    }
    Ok(found)
}

/// Refuses a synchronous copy of a source that is too long.
fn check_wait(sync: bool, len: u64) -> Result<(), Refusal> {
    if !sync || len <= SYNC_BYTES_MAX {
        return Ok(());
    }
    let refused = Refusal::new(Reason::CannotVerifyCopySource).status(409);
    Err(refused.hint(Hint::SourceTooLongToWait))
}

/// Refuses a copy that may only create a blob, if the blob exists. The commit checks it again.
async fn check_absent(front: &FrontEnd, blob: &BlobVersion) -> Result<(), Refusal> {
    let (key, revision, guard) = (blob.key.clone(), blob.revision, Guard::default());
    let read = ReadBlob { key, revision, guard, range: None, pieces: false };
    match front.rows.router.ask(read).await {
        // The commit reports a lease, which comes before this refusal.
        Ok(view) if view.record.lease.is_some() => Ok(()),
        Ok(_) => Err(Reason::BlobAlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// The tier of a copy. The copy of an archived source is rehydrated: its bytes are stored, but
/// become readable only after the time that a rehydration takes.
fn tier_of_copy(
    tier: AccessTier,
    rehydration: Option<(RehydratePriority, Duration)>,
    now: Timestamp,
) -> TierState {
    let Some((priority, time)) = rehydration else { return TierState::new(tier, now) };
    let rehydration = Rehydration { to: tier, priority, ready: now.plus(time) };
    TierState { rehydrating: Some(rehydration), ..TierState::new(AccessTier::Archive, now) }
}

/// The refusal of a destination that does not meet a condition.
fn explain_target(refused: Refusal, by_date: bool) -> Refusal {
    if by_date && refused.reason == Reason::ConditionNotMet {
        return Reason::TargetConditionNotMet.into();
    }
    refused
}

/// Whether a failed condition on the destination can only be a date. Source: "Blob service error
/// codes", which has a code of its own for dates.
fn is_only_by_date(guard: &Guard) -> bool {
    let Conditions { if_match, if_none_match, .. } = &guard.conditions;
    guard.if_tags.is_none() && if_match.is_none() && if_none_match.is_none()
}

/// The kind of the destination. An append blob is sealed if its source is, unless the request says
/// otherwise.
fn kind_of_copy(kind: BlobKind, seal: Option<bool>) -> Result<BlobKind, Refusal> {
    match (kind, seal) {
        (kind, None) => Ok(kind),
        (BlobKind::Append { blocks, .. }, Some(sealed)) => Ok(BlobKind::Append { blocks, sealed }),
        (kind, Some(false)) => Ok(kind),
        (BlobKind::Block | BlobKind::Page { .. }, Some(true)) => {
            Err(Reason::InvalidBlobType.into())
        }
    }
}

/// The content tag and checksums that the destination takes from the source; none if the copy is
/// pending.
fn fields(source: &Facts, pending: bool) -> NewBlobFields {
    if pending {
        return NewBlobFields::default();
    }
    let property = source.properties.content_md5.plain();
    NewBlobFields {
        content_tag: source.content_tag.map(|tag| tag.beside(property)),
        checksums: source.checksums.clone(),
        object: None,
    }
}

/// As [`fields`], for content under a key: a checksum of the source would reveal information about
/// it.
fn fields_under_key(front: &FrontEnd, kind: BlobKind, key: Option<&CustomerKey>) -> NewBlobFields {
    let content_tag = (kind == BlobKind::Block).then(|| content_tag(front, key));
    NewBlobFields { content_tag, ..NewBlobFields::default() }
}

/// Properties of a copy under this key. An MD5 that is still under the key of the source is left
/// out.
pub(super) fn properties_under(
    front: &FrontEnd,
    key: Option<&CustomerKey>,
    mut properties: BlobProperties,
) -> BlobProperties {
    if let ContentMd5::Encrypted(_) = properties.content_md5 {
        properties.content_md5 = ContentMd5::Absent;
    }
    encrypt_md5(&front.env, key, &mut properties);
    properties
}

/// An id for a copy.
pub(super) fn fresh_id(front: &FrontEnd) -> Uuid {
    let (high, low) = (front.env.rand.next_u64(), front.env.rand.next_u64());
    let random = u128::from(high) << 64 | u128::from(low);
    Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

/// Copies the properties that the request leaves out, but not the MD5: that of the source was never
/// verified.
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
