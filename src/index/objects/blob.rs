//! Current blobs: Put Blob, property and metadata changes, Delete Blob.

use crate::index::api::BlobChange;
use crate::index::api::Error;
use crate::index::api::LeaseBlob;
use crate::index::api::Leased;
use crate::index::api::PutBlob;
use crate::index::api::Refused;
use crate::index::api::UpdateBlob;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::append;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::chain;
use crate::index::objects::chain::Fate;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::lease as machine;
use crate::index::objects::lock;
use crate::index::objects::new_fields;
use crate::index::objects::repeated;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::tier_limits;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::BlobKind;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::NewKind;
use crate::types::RoutingKey;
use crate::types::TierState;
use crate::types::Timestamp;

/// Put Blob.
pub(super) async fn put(eval: &mut Evaluation<'_>, put: &PutBlob) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&put.key);
    let old = blob_row::current(eval, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&put.guard, before, eval.now)?;
    guard::replaceable(&put.guard, before, eval.now)?;
    let content = Content::from(&put.content);
    let kept = content.locations().to_vec();
    let again = repeated::answer(eval, &key, &put.guard, (old.as_ref(), &kept)).await?;
    if let Some(answer) = again {
        return Ok(answer);
    }
    let NewBlob { kind, len, crc64, content } = begin(put.kind, content, put.crc64, eval.now);
    tier_limits::check_new(put.tier, kind, len)?;
    let mut record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind,
        tier: put.tier.map(|tier| TierState::new(tier, eval.now)),
        lease,
        tags: put.tags.clone(),
        fields: new_fields::of(kind, &put.fields),
        ..BlobRecord::after(before, eval.now, len, crc64)
    };
    record.put_under(put.guard.encryption.applied());
    tags::changed(eval, &key, &blob_row::tags_of(old.as_ref()), &put.tags);
    let mut dropped = staged::discard(eval, &key).await?;
    let of = InTheWay::of(old.as_ref());
    let way = chain::make_way(eval, &key, &put.guard, of).await?;
    way.finish(&mut record, &put.guard, eval.now)?;
    dropped.extend(way.dropped);
    garbage::write(eval, &key, &dropped, &kept);
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob_row::written_as(eval.now, &record))
}

/// A blob as Put Blob makes it.
struct NewBlob {
    kind: BlobKind,
    len: u64,
    crc64: Crc64,
    content: BlobContent,
}

/// Makes a new blob of a kind and a body, for Put Blob.
fn begin(kind: NewKind, content: Content, crc64: Crc64, now: Timestamp) -> NewBlob {
    match kind {
        NewKind::Block => {
            let len = content.len();
            let content = BlobContent { id_len: 0, layout: Layout::Whole(content) };
            NewBlob { kind: BlobKind::Block, len, crc64, content }
        }
        NewKind::Append => {
            let (generation, directory, tail) = (now.ticks(), Vec::new(), Vec::new());
            let layout = Layout::Appended { generation, directory, tail };
            let content = BlobContent { id_len: append::ID_LEN, layout };
            let kind = BlobKind::Append { blocks: 0, sealed: false };
            NewBlob { kind, len: 0, crc64: Crc64::EMPTY, content }
        }
        NewKind::Page { len, sequence } => {
            let layout = Layout::Pages { layers: vec![now.ticks()] };
            let content = BlobContent { id_len: 0, layout };
            NewBlob { kind: BlobKind::Page { sequence }, len, crc64: Crc64::EMPTY, content }
        }
    }
}

/// Set Blob Properties, Set Blob Metadata, Set Blob Tags.
pub(super) async fn update(
    eval: &mut Evaluation<'_>,
    update: &UpdateBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&update.key);
    if !update.revision.is_current() {
        return update_revision(eval, &key, update).await;
    }
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    let is_beside = update.change.is_beside_content();
    let lease = check_update(update, &blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    // The archive tier prevents changes of content, properties and metadata, but not of the index
    // tags and of access. Object lock prevents them too. A change of metadata would leave the held
    // version unchanged, but the service refuses it as well.
    if !is_beside {
        lock::may_change(&blob.record, eval.now)?;
        guard::not_archived(&blob.record, eval.now)?;
    }
    encryption::check_change(&update.guard.encryption, blob.record.under().as_ref())?;
    if matches!(update.change, BlobChange::Metadata(_))
        && let Fate::Kept(version) = chain::fate(&update.guard, &blob.record, eval.now)?
    {
        blob = chain::fork(eval, &key, &update.guard, &chain::Fork { version, blob }).await?;
    }
    blob.record.lease = lease;
    apply(eval, &key, &mut blob, update)?;
    if !is_beside {
        blob.record.last_modified = eval.now;
        blob.record.etag = Etag::from_commit(eval.now);
    }
    blob.store(eval, &key);
    Ok(blob_row::written_as(eval.now, &blob.record))
}

/// Checks the preconditions of the request. Returns the lease that stays.
fn check_update(
    update: &UpdateBlob,
    record: &BlobRecord,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    match update.change {
        // These requests take no lease id.
        BlobChange::Retention(_) | BlobChange::LegalHold(_) => {
            guard::conditions(&update.guard, record)?;
            Ok(record.lease)
        }
        BlobChange::Properties(_)
        | BlobChange::Metadata(_)
        | BlobChange::Tags(_)
        | BlobChange::Acl(_) => guard::change(&update.guard, record, now),
    }
}

fn apply(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    blob: &mut Blob,
    update: &UpdateBlob,
) -> Result<(), Error> {
    match &update.change {
        BlobChange::Properties(properties) => {
            encryption::check_properties(properties, blob.record.under().as_ref())?;
            blob.record.replace_properties(properties.clone());
        }
        BlobChange::Metadata(metadata) => blob.record.metadata = metadata.clone(),
        BlobChange::Tags(new) => {
            // Searches find only the tags of current blobs.
            if blob.place() == Place::Main {
                tags::changed(eval, key, &blob.record.tags, new);
            }
            blob.record.tags = new.clone();
        }
        BlobChange::Acl(acl) => blob.record.set_acl(*acl),
        BlobChange::Retention(new) => {
            lock::set_retention(&mut blob.record, *new, &update.guard, eval.now)?;
        }
        BlobChange::LegalHold(on) => {
            lock::set_legal_hold(&mut blob.record, *on, &update.guard)?;
        }
    }
    Ok(())
}

/// Changes the tags, the access control list or the protection of a snapshot or a version.
async fn update_revision(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    update: &UpdateBlob,
) -> Result<WriteReply, Error> {
    let of = RevisionOf { revision: update.revision, guard: &update.guard };
    let mut found = revision::load(eval.view, key, of).await?;
    check_update(update, &found.record, eval.now)?;
    // The front end accepts no other change.
    if !update.change.is_beside_content() {
        return Err(Refused::WrongKind.into());
    }
    apply(eval, key, &mut found, update)?;
    found.store(eval, key);
    Ok(blob_row::written_as(eval.now, &found.record))
}

/// Lease Blob. ETag and last-modified time do not change.
pub(super) async fn lease(
    eval: &mut Evaluation<'_>,
    lease: &LeaseBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&lease.key);
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    guard::conditions(&lease.guard, &blob.record)?;
    guard::not_incremental(&blob.record)?;
    let result = machine::act(blob.record.lease, lease.action, eval.now)?;
    blob.record.lease = result.lease();
    let BlobRecord { etag, last_modified, .. } = blob.record;
    let (now, version) = (eval.now, blob.record.version());
    blob.store(eval, &key);
    let written = Written { etag, last_modified, version };
    Ok(WriteReply::Leased(Leased { written, result, now }))
}
