//! Snapshots: a second row and layout of a blob, under the time at which the snapshot was taken.
//! The bytes are shared, not copied (ADR 0009).
//!
//! Source: "Snapshot Blob", "Delete Blob".

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::SnapshotBlob;
use crate::index::api::Snapshotted;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::chain;
use crate::index::objects::chain::Fate;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::layout;
use crate::index::objects::layout::SharedLayout;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::Etag;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Snapshot Blob. Where versions are kept, it makes one. ETag and last-modified time of the blob do
/// not change. The snapshot has the same,
/// unless it gets metadata of its own.
pub(super) async fn take(
    eval: &mut Evaluation<'_>,
    snapshot: &SnapshotBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&snapshot.key);
    let mut blob = blob_row::current(eval, &key).await?.ok_or(Refused::BlobNotFound)?;
    guard::change_beside_lease(&snapshot.guard, &blob.record, eval.now)?;
    encryption::check(&snapshot.guard.encryption, blob.record.encryption.as_ref())?;
    guard::not_archived(&blob.record, eval.now)?;
    let BlobContent { id_len, layout } = blob.content(&key)?;
    let SharedLayout { kept, copy } = layout::share(eval, &key, layout.clone()).await?;
    if let Fate::Kept(version) = chain::fate(&snapshot.guard, &blob.record) {
        // The blob, the snapshot and the version have the content from now on.
        let of = layout::share_once_more(eval, &key, layout).await?;
        let former = blob.clone().with_content(&BlobContent { id_len, layout: of.copy });
        chain::replace_null(eval, &key, version).await?;
        chain::keep(eval, &key, version, former);
        chain::begin(eval, &key, &snapshot.guard, &mut blob.record).await?;
    }

    let mut record = BlobRecord { lease: None, snapshots: 0, ..blob.record.clone() };
    record.set_version(None);
    if let Some(metadata) = &snapshot.metadata {
        record.metadata = metadata.clone();
        record.last_modified = eval.now;
        record.etag = Etag::from_commit(eval.now);
    }
    let written = Written {
        etag: record.etag,
        last_modified: record.last_modified,
        version: blob.record.version(),
    };
    let content = BlobContent { id_len, layout: copy };
    let row = keys::snapshot(&key, eval.now);
    eval.out.put(Family::Versions, row, values::encode_blob(&record, &content));

    blob.record.snapshots = blob.record.snapshots.saturating_add(1);
    let content = BlobContent { id_len, layout: kept };
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&blob.record, &content));
    Ok(WriteReply::Snapshotted(Snapshotted { snapshot: eval.now, written }))
}

/// Removes one snapshot, whose row has `content`, and returns the locations that it owns.
pub(super) async fn remove(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    row: &Bytes,
    content: &BlobContent,
) -> Result<Vec<Location>, Error> {
    let dropped = layout::owned(eval, blob, &content.layout).await?;
    // Layers may be removed immediately: no read finds them without the row. The locations of their
    // spans become garbage then.
    layout::remove_rows_since(eval, blob, &content.layout, Timestamp::ZERO);
    eval.out.delete(Family::Versions, row.clone());
    Ok(dropped)
}

/// Removes all snapshots of a blob, and returns the locations that they own.
pub(super) async fn remove_all(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
) -> Result<Vec<Location>, Error> {
    let low = blob.as_bytes().clone();
    let mut rows = Cursor::new(eval.view, Family::Versions, low, Some(keys::versions_start(blob)));
    let mut dropped = Vec::new();
    while let Some(row) = rows.take().await? {
        let VersionKey::Snapshot(_) = keys::parse_version(&row.key, blob)? else { continue };
        let (_record, content) =
            values::decode_record_head::<BlobRecord>(Family::Versions, &row.key, &row.value)?;
        let content = values::decode_content(&row.key, content)?;
        dropped.extend(remove(eval, blob, &row.key, &content).await?);
    }
    Ok(dropped)
}
