//! Current blobs: Put Blob, property and metadata changes, Delete Blob.

use crate::index::api::BlobChange;
use crate::index::api::DeleteBlob;
use crate::index::api::Error;
use crate::index::api::LeaseBlob;
use crate::index::api::Leased;
use crate::index::api::PutBlob;
use crate::index::api::UpdateBlob;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::append;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::encryption;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::lease as machine;
use crate::index::objects::snapshot;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::Crc64;
use crate::types::DeleteScope;
use crate::types::Etag;
use crate::types::NewKind;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// Put Blob.
pub(super) async fn put(
    view: &dyn Rows,
    put: &PutBlob,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&put.key);
    let old = blob_row::load(view, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&put.guard, before, now)?;
    before.map_or(Ok(()), |before| guard::not_archived(before, now))?;
    let content = Content::from(&put.content);
    let kept = content.locations().to_vec();
    let (kind, len, crc64, content) = begin(put.kind, content, put.crc64, now);
    let record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind,
        tier: put.tier.map(|tier| TierState::new(tier, now)),
        encryption: put.guard.encryption.applied(),
        lease,
        tags: put.tags.clone(),
        ..BlobRecord::after(before, now, len, crc64)
    };
    tags::changed(&key, (&blob_row::tags_of(old.as_ref()), &put.tags), now, out);
    let mut dropped = staged::discard(view, &key, out).await?;
    if let Some(old) = old {
        let layout = old.content(&key)?.layout;
        dropped.extend(layout::owned(view, &key, &layout, out).await?);
        layout::remove_rows(&key, &layout, now, out);
    }
    garbage::write(&key, now, &dropped, &kept, out);
    out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob_row::written(now))
}

/// Kind, length, checksum and layout of what Put Blob makes.
fn begin(
    kind: NewKind,
    content: Content,
    crc64: Crc64,
    now: Timestamp,
) -> (BlobKind, u64, Crc64, BlobContent) {
    match kind {
        NewKind::Block => {
            let len = content.len();
            let content = BlobContent { id_len: 0, layout: Layout::Whole(content) };
            (BlobKind::Block, len, crc64, content)
        }
        NewKind::Append => {
            let (generation, directory, tail) = (now.ticks(), Vec::new(), Vec::new());
            let layout = Layout::Appended { generation, directory, tail };
            let content = BlobContent { id_len: append::ID_LEN, layout };
            (BlobKind::Append { blocks: 0, sealed: false }, 0, Crc64::EMPTY, content)
        }
        NewKind::Page { len, sequence } => {
            let layout = Layout::Pages { layers: vec![now.ticks()] };
            let content = BlobContent { id_len: 0, layout };
            (BlobKind::Page { sequence }, len, Crc64::EMPTY, content)
        }
    }
}

/// Set Blob Properties, Set Blob Metadata.
pub(super) async fn update(
    view: &dyn Rows,
    update: &UpdateBlob,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&update.key);
    if let Some(taken) = update.snapshot {
        return snapshot::set_tags(view, (&key, taken), update, now, out).await;
    }
    let mut blob = blob_row::load(view, &key).await?.ok_or(Error::BlobNotFound)?;
    blob.record.lease = guard::change(&update.guard, &blob.record, now)?;
    // The archive keeps content, properties and metadata from change, not the tags a blob is found
    // by.
    if !matches!(update.change, BlobChange::Tags(_)) {
        guard::not_archived(&blob.record, now)?;
    }
    encryption::check(&update.guard.encryption, blob.record.encryption.as_ref())?;
    match &update.change {
        BlobChange::Properties(properties) => {
            encryption::check_properties(properties, blob.record.encryption.as_ref())?;
            blob.record.properties = properties.clone();
        }
        BlobChange::Metadata(metadata) => blob.record.metadata = metadata.clone(),
        BlobChange::Tags(new) => {
            tags::changed(&key, (&blob.record.tags, new), now, out);
            blob.record.tags = new.clone();
        }
    }
    if !matches!(update.change, BlobChange::Tags(_)) {
        blob.record.last_modified = now;
        blob.record.etag = Etag::from_commit(now);
    }
    out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(blob_row::written(now))
}

/// Lease Blob: tag and time stay as they are.
pub(super) async fn lease(
    view: &dyn Rows,
    lease: &LeaseBlob,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&lease.key);
    let mut blob = blob_row::load(view, &key).await?.ok_or(Error::BlobNotFound)?;
    guard::conditions(&lease.guard, &blob.record)?;
    let after = machine::act(blob.record.lease, lease.action, now).map_err(Error::Lease)?;
    blob.record.lease = after;
    let BlobRecord { etag, last_modified, .. } = blob.record;
    out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(WriteReply::Leased(Leased { written: Written { etag, last_modified }, lease: after, now }))
}

/// Delete Blob.
pub(super) async fn delete(
    view: &dyn Rows,
    delete: &DeleteBlob,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&delete.key);
    let mut blob = blob_row::load(view, &key).await?.ok_or(Error::BlobNotFound)?;
    match delete.scope {
        DeleteScope::Snapshot(taken) => {
            return delete_snapshot(view, (&key, blob), delete, taken, (now, out)).await;
        }
        DeleteScope::Blob | DeleteScope::BlobAndSnapshots | DeleteScope::Snapshots => {
            guard::change(&delete.guard, &blob.record, now)?;
        }
    }
    match delete.scope {
        DeleteScope::Blob if blob.record.snapshots > 0 => return Err(Error::SnapshotsPresent),
        DeleteScope::Snapshots => {
            let dropped = snapshot::remove_all(view, &key, out).await?;
            garbage::write(&key, now, &dropped, &[], out);
            blob.record.snapshots = 0;
            out.put(Family::Main, key.as_bytes().clone(), blob.encode());
        }
        DeleteScope::Blob | DeleteScope::BlobAndSnapshots | DeleteScope::Snapshot(_) => {
            remove(view, &key, now, out).await?;
        }
    }
    Ok(WriteReply::Done)
}

/// Removes one snapshot. Snapshots have no leases, and a lease on the blob does not hold them.
async fn delete_snapshot(
    view: &dyn Rows,
    (key, mut blob): (&RoutingKey, Blob),
    delete: &DeleteBlob,
    taken: Timestamp,
    (now, out): (Timestamp, &mut RowBatch),
) -> Result<WriteReply, Error> {
    let found = blob_row::load_version(view, key, Some(taken)).await?.ok_or(Error::BlobNotFound)?;
    guard::change(&delete.guard, &found.record, now)?;
    let row = keys::snapshot(key, taken);
    let dropped = snapshot::remove(view, key, &row, &found.content(key)?, out).await?;
    garbage::write(key, now, &dropped, &[], out);
    blob.record.snapshots = blob.record.snapshots.saturating_sub(1);
    out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    Ok(WriteReply::Done)
}

/// Removes all rows of a blob, committed, staged and snapshots, leaving garbage rows.
pub(super) async fn remove(
    view: &dyn Rows,
    key: &RoutingKey,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<(), Error> {
    let mut dropped = staged::discard(view, key, out).await?;
    dropped.extend(snapshot::remove_all(view, key, out).await?);
    if let Some(blob) = blob_row::load(view, key).await? {
        if guard::is_copying(&blob.record) {
            out.delete(Family::Work, keys::copy_work(key));
        }
        tags::changed(key, (&blob.record.tags, &Tags::default()), now, out);
        let layout = blob.content(key)?.layout;
        dropped.extend(layout::owned(view, key, &layout, out).await?);
        layout::remove_rows(key, &layout, now, out);
        out.delete(Family::Main, key.as_bytes().clone());
    }
    garbage::write(key, now, &dropped, &[], out);
    Ok(())
}
