//! Snapshots: a second row and layout of a blob, under the time at which the snapshot was taken.
//! The bytes are shared, not copied (ADR 0009).
//!
//! Source: "Snapshot Blob", "Delete Blob".

use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::Refused;
use crate::index::api::SnapshotBlob;
use crate::index::api::Snapshotted;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::chain;
use crate::index::objects::chain::Fate;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::layout;
use crate::index::objects::layout::SharedLayout;
use crate::index::objects::lock;
use crate::index::objects::restorable;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
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
    encryption::check_change(&snapshot.guard.encryption, blob.record.under().as_ref())?;
    guard::not_archived(&blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    let BlobContent { id_len, layout } = blob.content(&key)?;
    let SharedLayout { kept, copy } = layout::share(eval, &key, layout.clone()).await?;
    if let Fate::Kept(version) = chain::fate(&snapshot.guard, &blob.record, eval.now)? {
        // From now on the blob, the snapshot and the version share the content.
        let of = layout::share_once_more(eval, &key, layout).await?;
        let former = blob.clone().with_content(&BlobContent { id_len, layout: of.copy });
        chain::replace_null(eval, &key, &snapshot.guard, version).await?;
        chain::keep(eval, &key, version, former);
        chain::begin(eval, &key, &snapshot.guard, &mut blob.record).await?;
    }

    let mut record = BlobRecord { lease: None, snapshots: 0, ..blob.record.clone() };
    record.set_version(None);
    lock::release(&mut record);
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

/// Removes one snapshot, or soft-deletes it. Returns the locations that become garbage.
pub(super) async fn dispose(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    guard: &Guard,
    snapshot: Blob,
) -> Result<Vec<Location>, Error> {
    let Place::Snapshot(time) = snapshot.place() else { return Ok(Vec::new()) };
    if let Fate::Restorable(period) = chain::fate_of_removed(guard, &snapshot.record, eval.now)? {
        eval.out.delete(Family::Versions, keys::snapshot(blob, time));
        let at = DeletedKey { state: DeletedState::Snapshot, time };
        restorable::keep(eval, blob, (at, period), snapshot).await?;
        return Ok(Vec::new());
    }
    remove(eval, blob, &snapshot).await
}

/// Removes one snapshot. Returns the locations that become garbage.
async fn remove(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    snapshot: &Blob,
) -> Result<Vec<Location>, Error> {
    let Place::Snapshot(time) = snapshot.place() else { return Ok(Vec::new()) };
    eval.out.delete(Family::Versions, keys::snapshot(blob, time));
    let content = snapshot.content(blob)?;
    let dropped = layout::owned(eval, blob, &content.layout).await?;
    // Layers may be removed immediately: no read finds them without the row. The locations of their
    // spans become garbage then.
    layout::remove_rows_since(eval, blob, &content.layout, Timestamp::ZERO);
    Ok(dropped)
}

/// Removes all snapshots of a blob, or soft-deletes them. Returns the locations that become
/// garbage.
pub(super) async fn dispose_all(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    guard: &Guard,
) -> Result<Vec<Location>, Error> {
    let mut rows = all(eval.view, blob);
    let mut dropped = Vec::new();
    while let Some(snapshot) = next(&mut rows, blob).await? {
        dropped.extend(dispose(eval, blob, guard, snapshot).await?);
    }
    Ok(dropped)
}

/// Removes all snapshots of a blob of a container that is gone. Returns the locations that become
/// garbage.
pub(super) async fn remove_all(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
) -> Result<Vec<Location>, Error> {
    let mut rows = all(eval.view, blob);
    let mut dropped = Vec::new();
    while let Some(snapshot) = next(&mut rows, blob).await? {
        dropped.extend(remove(eval, blob, &snapshot).await?);
    }
    Ok(dropped)
}

/// A cursor over the range of rows that contains the snapshots of a blob.
fn all<'a>(view: &'a dyn Rows, blob: &RoutingKey) -> Cursor<'a> {
    let (low, high) = (keys::deleted_end(blob), keys::versions_start(blob));
    Cursor::new(view, Family::Versions, low, Some(high))
}

/// The next snapshot.
async fn next(rows: &mut Cursor<'_>, blob: &RoutingKey) -> Result<Option<Blob>, Error> {
    while let Some(row) = rows.take().await? {
        if let VersionKey::Snapshot(time) = keys::parse_version(&row.key, blob)? {
            return blob_row::decode(&row.key, &row.value, Place::Snapshot(time)).map(Some);
        }
    }
    Ok(None)
}
