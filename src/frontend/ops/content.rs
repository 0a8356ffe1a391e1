//! Get Blob and its properties.

use bytes::Bytes;

use crate::env::boxed;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::answers::Payer;
use crate::frontend::body::ResponseBody;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::encrypt::unlock::Unlocking;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::facts::Seen;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::read;
use crate::frontend::read::Reading;
use crate::frontend::state::FrontEnd;
use crate::index::BlobView;
use crate::index::Guard;
use crate::index::ReadBlob;
use crate::index::ReadNote;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::RangeChecksum;
use crate::protocol::model::reply::BlobFacts;
use crate::types::ByteRange;
use crate::types::TierFamily;
use crate::types::Versioning;

/// The bytes of a blob that a Get Blob wants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WantedBytes {
    /// `None` for the whole blob.
    pub(crate) range: Option<ByteRange>,
    /// The checksum of the range that the answer's head must have.
    pub(crate) checksum: Option<RangeChecksum>,
}

/// A blob that was looked up to read its content.
pub(super) struct Opened {
    pub(super) blob: BlobVersion,
    pub(super) view: Box<BlobView>,
    /// Keeps reclaim from freeing what the view names.
    pub(super) note: ReadNote,
    /// The key of a blob that is under one.
    pub(super) decrypting: Option<Decrypting>,
    pub(super) tiers: TierFamily,
    pub(super) versioning: Option<Versioning>,
}

/// Looks a blob up to read its content, of which `range` is wanted; `None` for all of it.
pub(super) async fn open(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    range: Option<ByteRange>,
) -> Result<Opened, Refusal> {
    let (unlocking, tiers) = (Unlocking::of(front, &blob), blob.account.account_type.tiers());
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    // Noted before the look-up, so that nothing that it finds is freed before the content was read.
    let mut note = front.rows.inflight.read(front.env.clock.monotonic());
    let BlobVersion { key, revision } = blob.clone();
    let guard = lookup::guard(precondition);
    let versioning = guard.protection.versioning;
    let look_up = ReadBlob { key, revision, guard, range, pieces: true };
    let mut view = match read_blob(front, look_up).await {
        Ok(view) => view,
        Err(refused) if is_archived(&refused) => {
            return Err(boxed(|| explained(front, (blob, tiers), refused)).await);
        }
        Err(refused) => return Err(refused),
    };
    read::found(&mut note, &mut view);
    let decrypting = unlocking.found(&view.record)?;
    encrypt::decrypt_md5(decrypting.as_ref(), &mut view.record.properties)?;
    encrypt::decrypt_checksums(decrypting.as_ref(), &mut view.record)?;
    front.copies.show_progress(&mut view.record);
    Ok(Opened { blob, view, note, decrypting, tiers, versioning })
}

/// Get Blob. `payer` is charged for the memory of the answer.
pub(crate) async fn get(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    bytes: WantedBytes,
    payer: Payer,
) -> Answer {
    let Opened { blob, view, note, decrypting, tiers, versioning } =
        open(front, blob, bytes.range).await?;
    let now = front.env.clock.now();
    if let Some(reads) = &front.last_access {
        reads.note(&blob, &view.record, now);
    }
    let wanted = view.range.clone();
    if let (None, Some(content)) = (bytes.checksum, read::in_row(&view)) {
        let seen = Seen { record: view.record, is_current: view.is_current, tiers };
        let facts = facts::of_version(front, seen, now, versioning);
        let range = bytes.range.map(|_| wanted);
        let stream = Some(ResponseBody::full(content));
        return Ok(Answered { reply: Reply::Blob { facts, range, checksum: None }, stream });
    }
    let facts = facts::of_version(
        front,
        Seen { record: view.record.clone(), is_current: view.is_current, tiers },
        now,
        versioning,
    );
    let memory = || Some(AnswerMemory::new(&front.load.answers, payer));
    let checksum = match bytes.checksum {
        Some(kind) if wanted.end - wanted.start > RangeChecksum::BYTES_MAX => {
            return Err(kind.too_long());
        }
        Some(kind) => {
            // The range is read twice: its checksum is in the head, which precedes the bytes.
            let (blob, view, note) = (blob.clone(), view.clone(), note.another());
            let decrypting = decrypting.clone();
            let reading = Reading { blob, view, note, decrypting, memory: memory() };
            Some(read::checksum(read::source(front, reading), kind).await?)
        }
        None => None,
    };
    let body = if wanted.is_empty() {
        ResponseBody::full(Bytes::new())
    } else {
        read::begin(front, Reading { blob, view, note, decrypting, memory: memory() }).await?
    };
    let range = bytes.range.map(|_| wanted);
    Ok(Answered { reply: Reply::Blob { facts, range, checksum }, stream: Some(body) })
}

/// Get Blob Properties, Get Blob Metadata.
pub(crate) async fn facts(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
) -> Result<Box<BlobFacts>, Refusal> {
    let (unlocking, tiers) = (Unlocking::of(front, &blob), blob.account.account_type.tiers());
    let Located { blob: BlobVersion { key, revision }, precondition, .. } =
        blob.locate(&front.rows).await?;
    let guard = lookup::guard(precondition);
    let versioning = guard.protection.versioning;
    let look_up = ReadBlob { key, revision, guard, range: None, pieces: false };
    let mut view = read_blob(front, look_up).await?;
    let decrypting = unlocking.found(&view.record)?;
    encrypt::decrypt_md5(decrypting.as_ref(), &mut view.record.properties)?;
    encrypt::decrypt_checksums(decrypting.as_ref(), &mut view.record)?;
    front.copies.show_progress(&mut view.record);
    let seen = Seen { record: view.record, is_current: view.is_current, tiers };
    Ok(facts::of_version(front, seen, front.env.clock.now(), versioning))
}

const fn is_archived(refused: &Refusal) -> bool {
    matches!(refused.reason, Reason::BlobArchived | Reason::BlobBeingRehydrated)
}

/// Adds the storage class to the refusal of a blob in the archive tier.
async fn explained(
    front: &FrontEnd,
    (blob, tiers): (BlobVersion, TierFamily),
    refused: Refusal,
) -> Refusal {
    let BlobVersion { key, revision } = blob;
    let look_up = ReadBlob { key, revision, guard: Guard::default(), range: None, pieces: false };
    match read_blob(front, look_up).await {
        Ok(view) => {
            let now = front.env.clock.now();
            let class = facts::of_blob(front, tiers, view.record, now).storage_class();
            refused.detail(Detail::StorageClass, class.as_str())
        }
        Err(_) => refused,
    }
}

/// Reads a blob. The answer to a caller that only the access control list permits does not show the
/// protection.
async fn read_blob(front: &FrontEnd, look_up: ReadBlob) -> Result<Box<BlobView>, Refusal> {
    let is_only_open = look_up.guard.open_to.is_some();
    let found = front.rows.router.ask(look_up).await;
    let mut view = found.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    if is_only_open {
        view.record.set_retention(None);
        view.record.set_legal_hold(None);
    }
    Ok(view)
}
