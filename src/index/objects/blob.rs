//! Current blobs: Put Blob, property and metadata changes, Delete Blob.

use crate::index::api::BlobChange;
use crate::index::api::DeleteBlob;
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
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::lease as machine;
use crate::index::objects::new_fields;
use crate::index::objects::snapshot;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::BlobKind;
use crate::types::Crc64;
use crate::types::DeleteScope;
use crate::types::Etag;
use crate::types::Location;
use crate::types::NewKind;
use crate::types::RoutingKey;
use crate::types::Tags;
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
    let NewBlob { kind, len, crc64, content } = begin(put.kind, content, put.crc64, eval.now);
    let record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind,
        tier: put.tier.map(|tier| TierState::new(tier, eval.now)),
        encryption: put.guard.encryption.applied(),
        lease,
        tags: put.tags.clone(),
        fields: new_fields::of(kind, &put.fields),
        ..BlobRecord::after(before, eval.now, len, crc64)
    };
    tags::changed(eval, &key, &blob_row::tags_of(old.as_ref()), &put.tags);
    let mut dropped = staged::discard(eval, &key).await?;
    if let Some(old) = old {
        let layout = old.content(&key)?.layout;
        dropped.extend(layout::owned(eval, &key, &layout).await?);
        layout::remove_rows(eval, &key, &layout);
    }
    garbage::write(eval, &key, &dropped, &kept);
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob_row::written(eval.now))
}

/// A blob as Put Blob makes it.
struct NewBlob {
    kind: BlobKind,
    len: u64,
    crc64: Crc64,
    content: BlobContent,
}

/// Makes the blob that Put Blob makes of a kind and a body.
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

/// Set Blob Properties, Set Blob Metadata.
pub(super) async fn update(
    eval: &mut Evaluation<'_>,
    update: &UpdateBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&update.key);
    if let Some(taken) = update.snapshot {
        return snapshot::set_tags(eval, &key, taken, update).await;
    }
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    blob.record.lease = guard::change(&update.guard, &blob.record, eval.now)?;
    // The archive tier prevents changes of content, properties and metadata, but not of the index
    // tags and of access.
    if !matches!(update.change, BlobChange::Tags(_) | BlobChange::Acl(_)) {
        guard::not_archived(&blob.record, eval.now)?;
    }
    encryption::check(&update.guard.encryption, blob.record.encryption.as_ref())?;
    match &update.change {
        BlobChange::Properties(properties) => {
            encryption::check_properties(properties, blob.record.encryption.as_ref())?;
            blob.record.replace_properties(properties.clone());
        }
        BlobChange::Metadata(metadata) => blob.record.metadata = metadata.clone(),
        BlobChange::Tags(new) => {
            tags::changed(eval, &key, &blob.record.tags, new);
            blob.record.tags = new.clone();
        }
        BlobChange::Acl(acl) => blob.record.set_acl(*acl),
    }
    if !matches!(update.change, BlobChange::Tags(_) | BlobChange::Acl(_)) {
        blob.record.last_modified = eval.now;
        blob.record.etag = Etag::from_commit(eval.now);
    }
    eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(blob_row::written(eval.now))
}

/// Lease Blob. ETag and last-modified time do not change.
pub(super) async fn lease(
    eval: &mut Evaluation<'_>,
    lease: &LeaseBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&lease.key);
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    guard::conditions(&lease.guard, &blob.record)?;
    let result = machine::act(blob.record.lease, lease.action, eval.now)?;
    blob.record.lease = result.lease();
    let BlobRecord { etag, last_modified, .. } = blob.record;
    let now = eval.now;
    eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(WriteReply::Leased(Leased { written: Written { etag, last_modified }, result, now }))
}

/// Delete Blob.
pub(super) async fn delete(
    eval: &mut Evaluation<'_>,
    delete: &DeleteBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&delete.key);
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    match delete.scope {
        DeleteScope::Snapshot(taken) => {
            return delete_snapshot(eval, &key, blob, &SnapshotOf { taken, delete }).await;
        }
        DeleteScope::Blob | DeleteScope::BlobAndSnapshots | DeleteScope::Snapshots => {
            guard::change(&delete.guard, &blob.record, eval.now)?;
        }
    }
    match delete.scope {
        DeleteScope::Blob if blob.record.snapshots > 0 => {
            return Err(Refused::SnapshotsPresent.into());
        }
        DeleteScope::Snapshots => {
            let dropped = snapshot::remove_all(eval, &key).await?;
            garbage::write(eval, &key, &dropped, &[]);
            blob.record.snapshots = 0;
            eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
        }
        DeleteScope::Blob | DeleteScope::BlobAndSnapshots | DeleteScope::Snapshot(_) => {
            remove(eval, &key).await?;
        }
    }
    Ok(WriteReply::Done)
}

/// The snapshot that a request deletes.
struct SnapshotOf<'a> {
    taken: Timestamp,
    delete: &'a DeleteBlob,
}

/// Removes one snapshot. Snapshots have no leases, and a lease on the blob does not protect them.
async fn delete_snapshot(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    mut blob: Blob,
    snapshot: &SnapshotOf<'_>,
) -> Result<WriteReply, Error> {
    let SnapshotOf { taken, delete } = *snapshot;
    let found =
        blob_row::load_version(eval.view, key, Some(taken)).await?.ok_or(Refused::BlobNotFound)?;
    guard::change(&delete.guard, &found.record, eval.now)?;
    let row = keys::snapshot(key, taken);
    let dropped = snapshot::remove(eval, key, &row, &found.content(key)?).await?;
    garbage::write(eval, key, &dropped, &[]);
    blob.record.snapshots = blob.record.snapshots.saturating_sub(1);
    eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(WriteReply::Done)
}

/// Removes all rows of a blob but its uploads: the committed one, staged blocks and snapshots.
/// Writes garbage rows for what they own.
async fn remove(eval: &mut Evaluation<'_>, key: &RoutingKey) -> Result<(), Error> {
    let dropped = remove_rows(eval, key).await?;
    garbage::write(eval, key, &dropped, &[]);
    Ok(())
}

/// As [`remove`]. Returns the locations that the rows own; the caller writes the garbage rows.
pub(super) async fn remove_rows(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
) -> Result<Vec<Location>, Error> {
    let mut dropped = staged::discard(eval, key).await?;
    dropped.extend(snapshot::remove_all(eval, key).await?);
    if let Some(blob) = blob_row::current(eval, key).await? {
        if guard::is_copying(&blob.record) {
            eval.out.delete(Family::Work, keys::copy_work(key));
        }
        tags::changed(eval, key, &blob.record.tags, &Tags::default());
        let layout = blob.content(key)?.layout;
        dropped.extend(layout::owned(eval, key, &layout).await?);
        layout::remove_rows(eval, key, &layout);
        eval.out.delete(Family::Main, key.as_bytes().clone());
    }
    Ok(dropped)
}
