//! Sources in this same store.

use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::commit;
use crate::frontend::dialect::source::AuthorizedSource;
use crate::frontend::dialect::source::authorize;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::encrypt::unlock::Unlocking;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::read;
use crate::frontend::read::Reading;
use crate::frontend::source::facts::Facts;
use crate::frontend::source::refusal;
use crate::frontend::source::requester::Requester;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::BlobRecord;
use crate::index::BlobView;
use crate::index::CopiedContent;
use crate::index::CopyStatus;
use crate::index::EncryptionClaim;
use crate::index::Frames;
use crate::index::Guard;
use crate::index::NewContent;
use crate::index::ReadBlob;
use crate::index::Share;
use crate::index::SharePages;
use crate::index::SharedPages;
use crate::index::inflight::CopyNote;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::ArchivedSource;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::BlobOperation;
use crate::types::AccessTier;
use crate::types::AccountId;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::Conditions;
use crate::types::ContentMd5;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::EtagMatch;
use crate::types::Timestamp;

/// A blob of this store that was looked up, as of that instant.
#[derive(Debug)]
pub(crate) struct Inside {
    blob: BlobVersion,
    /// Record, range and first pieces.
    view: Box<BlobView>,
    note: index::inflight::ReadNote,
    /// The account whose share of memory the bytes in transit use.
    payer: AccountId,
    /// The key under which its content is: that of the request, or of its scope.
    decrypting: Option<Decrypting>,
    /// The Content-MD5 of a blob under a scope with a key.
    scoped_md5: Option<ContentMd5>,
    /// The encryption that the request names for it.
    encryption: EncryptionClaim,
    /// Whether it is in the archive tier. Its look-up permits that then.
    over_archived: bool,
}

/// A blob that a copy may read.
struct Readable<'a> {
    target: BlobTarget<'a>,
    /// The wanted bytes; `None` for all.
    range: Option<ByteRange>,
    payer: AccountId,
}

/// Content that the source's rows have marked as shared.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where it lies.
    pub(crate) content: SharedContent,
    /// Held until the commit that names it was answered.
    pub(crate) note: CopyNote,
}

/// Where shared content lies.
#[derive(Debug)]
pub(crate) enum SharedContent {
    /// As rows hold it.
    Content(CopiedContent),
    /// In whole frames, whose checksums are not known.
    Frames(Vec<Frames>),
}

/// Pages that the source's rows have marked as shared.
#[derive(Debug)]
pub(crate) struct SharedPart {
    /// The written spans, and the start of the next part.
    pub(crate) part: SharedPages,
    /// Held until the commit that names it was answered.
    pub(crate) note: CopyNote,
}

/// Authorizes and looks up.
pub(super) async fn open(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &CopySource,
) -> Result<Inside, Refusal> {
    let account = requester.account;
    let AuthorizedSource { account: owner, operation } =
        authorize(front, requester, source).await?;
    let Operation::Blob(BlobOperation::GetBlob { path, precondition, range, .. }) = *operation
    else {
        return Err(Refusal::new(Reason::CannotVerifyCopySource)
            .status(400)
            .message("The source URL names no blob."));
    };
    let (dialect, named) = (requester.arrival.dialect, path.clone());
    let explained = |error| {
        refusal::explain(dialect.explain(error, || {
            let (account, endpoint) = (owner.name.clone(), String::new());
            let (container, blob) = (Some(named.container.clone()), Some(named.blob.clone()));
            Some(Address {
                account,
                secondary: false,
                container,
                blob,
                blob_as_sent: None,
                endpoint,
            })
        }))
    };
    let mut precondition = precondition;
    precondition.over_archived = match source.archived {
        ArchivedSource::Refused => false,
        ArchivedSource::OwnAccount => owner.id == account.id,
        ArchivedSource::AnyAccount => true,
    };
    let target = BlobTarget { account: &owner, path, precondition };
    let readable = Readable { target, range, payer: account.id };
    find(front, readable).await.map_err(explained)
}

/// Looks up a blob of the requester's account, which the sender is permitted to read.
pub(super) async fn open_named(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &NamedSource,
) -> Result<Inside, Refusal> {
    let NamedSource { path, precondition, range } = source.clone();
    let account = requester.account;
    let target = BlobTarget { account, path, precondition };
    let found = find(front, Readable { target, range, payer: account.id }).await;
    let found = found.map_err(refusal::of_named)?;
    match range.and_then(|range| range.ends()) {
        Some((_, Some(last))) if last >= found.view.range.end => {
            Err(Refusal::from(Reason::InvalidRange).satisfiable(found.view.record.len))
        }
        Some(_) | None => Ok(found),
    }
}

async fn find(
    front: &FrontEnd,
    Readable { target, range, payer }: Readable<'_>,
) -> Result<Inside, Refusal> {
    let unlocking = Unlocking::of(front, &target);
    let Located { blob, precondition, .. } = target.locate(&front.rows).await?;
    // Noted before the look-up, so that nothing that it finds is freed before the copy has read it.
    let mut note = front.rows.inflight.read(front.env.clock.monotonic());
    let asked = lookup::guard(precondition);
    let encryption = asked.encryption.clone();
    let mut view = look_up(front, &blob, asked, range).await?;
    read::found(&mut note, &mut view);
    let decrypting = unlocking.found(&view.record)?;
    let scoped_md5 = scoped_md5(decrypting.as_ref(), &view.record)?;
    let copy = view.record.copy.as_ref();
    if copy.is_some_and(|copy| copy.status == CopyStatus::Pending) {
        // Its copy is still pending.
        return Err(Reason::PendingCopyOperation.into());
    }
    if let Some(reads) = &front.last_access {
        reads.note(&blob, &view.record, front.env.clock.now());
    }
    let tier = view.record.tier.as_ref().map(|tier| tier.at(front.env.clock.now()).tier);
    let over_archived = tier == Some(AccessTier::Archive);
    Ok(Inside { blob, view, note, payer, decrypting, scoped_md5, encryption, over_archived })
}

/// The Content-MD5 of a blob under a scope with a key, decrypted.
fn scoped_md5(
    decrypting: Option<&Decrypting>,
    record: &BlobRecord,
) -> Result<Option<ContentMd5>, Refusal> {
    if !record.is_under_key() || record.encryption.as_ref().is_some_and(Encryption::is_by_customer)
    {
        return Ok(None);
    }
    let content_md5 = record.properties.content_md5.clone();
    let mut properties = BlobProperties { content_md5, ..BlobProperties::default() };
    encrypt::decrypt_md5(decrypting, &mut properties)?;
    Ok(Some(properties.content_md5))
}

async fn look_up(
    front: &FrontEnd,
    blob: &BlobVersion,
    guard: Guard,
    range: Option<ByteRange>,
) -> Result<Box<BlobView>, Refusal> {
    let (key, revision) = (blob.key.clone(), blob.revision);
    let read = ReadBlob { key, revision, guard, range, pieces: true };
    front.rows.router.ask(read).await.map_err(|error| errors::from_index(&error, Subject::Blob))
}

impl Inside {
    /// The facts of the source.
    pub(crate) fn facts(&self) -> Facts {
        let record = &self.view.record;
        // Checksums of content under a key are encrypted.
        let is_whole = self.view.range == (0..record.len);
        let is_plain = !record.is_under_key();
        let content_tag = record.content_tag().filter(|_| is_whole && is_plain);
        let checksums = record.fields.as_ref().filter(|_| is_whole && is_plain);
        let checksums = checksums.map(|fields| fields.checksums.clone()).unwrap_or_default();
        let BlobRecord { kind, mut properties, metadata, tags, .. } = record.clone();
        if let Some(md5) = &self.scoped_md5 {
            properties.content_md5 = md5.clone();
        }
        let archived = self.over_archived;
        Facts { kind, properties, metadata, archived, tags, content_tag, checksums }
    }

    /// Which blob it is, and which of its states.
    pub(crate) const fn blob(&self) -> &BlobVersion {
        &self.blob
    }

    /// Its record.
    pub(crate) const fn record(&self) -> &BlobRecord {
        &self.view.record
    }

    /// The key under which its content is: that of the request, or of its scope.
    pub(crate) const fn decrypting(&self) -> Option<&Decrypting> {
        self.decrypting.as_ref()
    }

    /// The checksum of the whole blob.
    pub(crate) const fn crc64(&self) -> Crc64 {
        self.view.record.crc64
    }

    /// Bytes that are wanted.
    pub(crate) const fn len(&self) -> u64 {
        self.view.range.end - self.view.range.start
    }

    /// Has the source mark its content, so that the destination may name it; `None` when the wanted
    /// bytes cannot be shared.
    pub(crate) async fn share(&self, front: &FrontEnd) -> Result<Option<Shared>, Refusal> {
        if self.decrypting.is_none()
            && matches!(self.view.record.encryption, Some(Encryption::Customer(_)))
        {
            return Ok(None);
        }
        // Before the look-up, so that an audit knows of the copy.
        let note = front.rows.inflight.copy();
        let share = Share {
            key: self.blob.key.clone(),
            revision: self.blob.revision,
            guard: self.unchanged(),
            range: Some(self.view.range.clone()),
        };
        let answer = commit::commit(&front.rows, Box::new(share), None).await;
        let shared = answer.map_err(|error| refusal::of_index(&error))?;
        let content = match shared.content {
            Some(content) => {
                note.met(content.pieces().flat_map(locations).map(|location| location.extent));
                SharedContent::Content(content)
            }
            None if shared.frames.is_empty() => return Ok(None),
            None => {
                note.met(shared.frames.iter().map(|frames| frames.extent));
                SharedContent::Frames(shared.frames)
            }
        };
        Ok(Some(Shared { content, note }))
    }

    /// Holds when the source is as it was looked up.
    fn unchanged(&self) -> Guard {
        let tag = EtagMatch::Tags(vec![Some(self.view.record.etag)]);
        let conditions = Conditions { if_match: Some(tag), ..Conditions::default() };
        let (encryption, over_archived) = (self.encryption.clone(), self.over_archived);
        Guard { conditions, encryption, over_archived, ..Guard::default() }
    }

    /// As [`Self::share`] for a part of a page blob, from `from` on; only what changed since a
    /// snapshot, if one is given.
    pub(crate) async fn share_pages(
        &self,
        front: &FrontEnd,
        (since, from): (Option<Timestamp>, u64),
    ) -> Result<SharedPart, Refusal> {
        let note = front.rows.inflight.copy();
        let share = SharePages {
            key: self.blob.key.clone(),
            revision: self.blob.revision,
            guard: self.unchanged(),
            since,
            from,
        };
        let answer = commit::commit(&front.rows, Box::new(share), None).await;
        let part = answer.map_err(|error| refusal::of_index(&error))?;
        let named = part.spans.iter().filter_map(|span| span.content.as_ref()).flat_map(locations);
        note.met(named.map(|location| location.extent));
        Ok(SharedPart { part, note })
    }

    /// Reads the wanted bytes.
    pub(crate) async fn body(self, front: &FrontEnd) -> Result<RequestBody, Refusal> {
        let (idle, payer) = (front.config.body_idle, self.payer);
        let body = if self.view.range.is_empty() {
            ResponseBody::full(bytes::Bytes::new())
        } else {
            let Self { blob, view, note, decrypting, .. } = self;
            let reading = Reading { blob, view, note, decrypting, memory: None };
            read::begin(front, reading).await?
        };
        let mut body = RequestBody::of_source(body, idle, front.env.clone());
        body.pay(payer);
        Ok(body)
    }

    /// Reads the wanted bytes a second time, for a checksum.
    pub(crate) async fn reread(&self, front: &FrontEnd) -> Result<RequestBody, Refusal> {
        let note = self.note.another();
        let (blob, view) = (self.blob.clone(), self.view.clone());
        let (payer, decrypting) = (self.payer, self.decrypting.clone());
        let encryption = self.encryption.clone();
        let (scoped_md5, over_archived) = (self.scoped_md5.clone(), self.over_archived);
        let second =
            Self { blob, view, note, payer, decrypting, scoped_md5, encryption, over_archived };
        second.body(front).await
    }
}

/// Where content lies.
fn locations(content: &NewContent) -> &[crate::types::Location] {
    match content {
        NewContent::Inline(_) => &[],
        NewContent::Stored(locations) | NewContent::Shared(locations) => locations,
        NewContent::Encrypted(_, bytes) | NewContent::Authenticated(_, bytes) => locations(bytes),
    }
}
