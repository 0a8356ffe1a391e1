//! Incremental copies: a snapshot of a page blob becomes a snapshot of the destination, which has
//! nothing else. Only the changes since the snapshot before are added, as a layer above its layers.
//!
//! The destination names the layers of its newest snapshot. No write changes them: only another
//! incremental copy changes the blob, and it adds a layer of its own.
//!
//! Source: "Incremental Copy Blob".

use crate::index::api::CopiedContent;
use crate::index::api::Error;
use crate::index::api::Increment;
use crate::index::api::PutCopy;
use crate::index::api::Refused;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::chain;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::lock;
use crate::index::objects::page_copy;
use crate::index::objects::staged;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::record::IncrementalCopy;
use crate::index::record::IncrementalSource;
use crate::index::rows::Family;
use crate::types::RoutingKey;

/// Incremental Copy Blob. Creates the destination, or adds a snapshot to it.
pub(super) async fn put(
    eval: &mut Evaluation<'_>,
    put: &PutCopy,
    increment: &Increment,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&put.key);
    let old = blob_row::current(eval, &key).await?;
    if let Some(before) = old.as_ref().map(|old| &old.record).filter(|old| is_of(old, put)) {
        // The same copy, sent again because its answer was lost.
        return Ok(blob_row::written_as(before.last_modified, before));
    }
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&put.guard, before, eval.now)?;
    check(before, increment)?;
    let CopiedContent::Pages { layer, len } = put.content else {
        return Err(Refused::WrongKind.into());
    };
    let mut content = page_copy::adopt(eval, &key, layer).await?;
    let mut record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind: put.kind,
        copy: put.copy.clone(),
        lease,
        ..BlobRecord::after(before, eval.now, len, put.crc64)
    };
    record.put_under(put.guard.encryption.applied());
    match &old {
        Some(old) => go_on(eval, &key, old, (&mut record, &mut content))?,
        None => begin(eval, &key, put, &mut record).await?,
    }
    record.snapshots = record.snapshots.saturating_add(1);
    record.change_fields(|fields| {
        fields.incremental_copy = Some(IncrementalCopy { snapshot: Some(eval.now) });
    });
    take_snapshot(eval, &key, &record, &content);
    record.change_fields(|fields| {
        let Increment { source, snapshot, .. } = increment.clone();
        fields.incremental_source = Some(IncrementalSource { blob: source, snapshot });
    });
    let value = values::encode_blob(&record, &content);
    eval.out.put(Family::Main, key.as_bytes().clone(), value);
    Ok(blob_row::written_as(eval.now, &record))
}

/// Whether this copy has made the blob as it is.
fn is_of(before: &BlobRecord, put: &PutCopy) -> bool {
    let (Some(kept), Some(new)) = (&before.copy, &put.copy) else { return false };
    kept.id == new.id
}

/// Checks that the destination is one of this source, and has only earlier snapshots of it.
fn check(before: Option<&BlobRecord>, increment: &Increment) -> Result<(), Refused> {
    let last = match before.map(BlobRecord::incremental_source) {
        None => None,
        Some(Some(source)) if source.blob == increment.source => Some(source.snapshot),
        Some(_) => return Err(Refused::OtherIncrement),
    };
    if last.is_some_and(|last| increment.snapshot <= last) {
        return Err(Refused::EarlierIncrement);
    }
    // Another copy was faster, or the blob was removed.
    if last == increment.since { Ok(()) } else { Err(Refused::CopyPending) }
}

/// Continues with the existing blob: the new layer lies above the old ones.
fn go_on(
    eval: &Evaluation<'_>,
    key: &RoutingKey,
    old: &Blob,
    (record, content): (&mut BlobRecord, &mut BlobContent),
) -> Result<(), Error> {
    lock::may_change(&old.record, eval.now)?;
    record.set_version(old.record.version());
    let below = old.content(key)?.layout;
    let (Layout::Pages { layers }, Layout::Pages { layers: below }) = (&mut content.layout, below)
    else {
        return Err(keys::corrupt(Family::Main, key.as_bytes(), "not the layout of a page blob"));
    };
    layers.extend(below);
    Ok(())
}

/// Creates the blob if it does not exist.
async fn begin(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    put: &PutCopy,
    record: &mut BlobRecord,
) -> Result<(), Error> {
    let mut dropped = staged::discard(eval, key).await?;
    let way = chain::make_way(eval, key, &put.guard, InTheWay::of(None)).await?;
    way.finish(record, &put.guard, eval.now)?;
    dropped.extend(way.dropped);
    garbage::write(eval, key, &dropped, &[]);
    Ok(())
}

/// Writes the snapshot that a copy makes of a blob.
fn take_snapshot(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    record: &BlobRecord,
    content: &BlobContent,
) {
    let mut record = BlobRecord { lease: None, snapshots: 0, ..record.clone() };
    record.set_version(None);
    lock::release(&mut record);
    let row = keys::snapshot(key, eval.now);
    eval.out.put(Family::Versions, row, values::encode_blob(&record, content));
}
