//! Delete Blob: of the current blob, of snapshots, of versions.
//!
//! Source: "Delete Blob"; S3, "DeleteObject", "Working with delete markers".

#![deny(clippy::indexing_slicing)]

use crate::index::api::DeleteBlob;
use crate::index::api::Deleted;
use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::Refused;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::chain;
use crate::index::objects::chain::Fate;
use crate::index::objects::chain::Head;
use crate::index::objects::chain::Heir;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::chain::Version;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::layout;
use crate::index::objects::restorable;
use crate::index::objects::restorable::Removed;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::snapshot;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::undelete;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::DeleteScope;
use crate::types::Location;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::Timestamp;
use crate::types::VersionId;

/// Delete Blob.
pub(super) async fn delete(
    eval: &mut Evaluation<'_>,
    delete: &DeleteBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&delete.key);
    let deleted = match delete.scope {
        DeleteScope::Snapshot(taken) => one_snapshot(eval, &key, delete, taken).await?,
        DeleteScope::Snapshots => all_snapshots(eval, &key, delete).await?,
        DeleteScope::Permanently(revision) => undelete::end(eval, &key, delete, revision).await?,
        DeleteScope::Version(revision) => version(eval, &key, delete, revision).await?,
        DeleteScope::FormerVersion(time) => {
            version(eval, &key, delete, Revision::Version(time)).await?
        }
        DeleteScope::Blob | DeleteScope::BlobAndSnapshots | DeleteScope::Object => {
            current(eval, &key, delete).await?
        }
    };
    Ok(WriteReply::Deleted(deleted))
}

/// Deletes the current blob. If versions are kept, it becomes a version below a delete marker.
async fn current(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
) -> Result<Deleted, Error> {
    let marker = chain::made_by(&delete.guard, eval.now);
    let Some(blob) = blob_row::current(eval, key).await? else {
        if marker.is_some() && delete.scope == DeleteScope::Object {
            return mark_missing(eval, key, delete).await;
        }
        let of = RevisionOf { revision: Revision::Current, guard: &delete.guard };
        return Err(revision::missing(eval.view, key, of).await?);
    };
    guard::change(&delete.guard, &blob.record, eval.now)?;
    let takes_snapshots = delete.scope == DeleteScope::BlobAndSnapshots;
    let keeps_snapshots = marker.is_some() && delete.scope == DeleteScope::Object;
    if blob.record.snapshots > 0 && !takes_snapshots && !keeps_snapshots {
        return Err(Refused::SnapshotsPresent.into());
    }
    let mut dropped = staged::discard(eval, key).await?;
    let mut snapshots = blob.record.snapshots;
    if takes_snapshots {
        dropped.extend(snapshot::dispose_all(eval, key, &delete.guard).await?);
        snapshots = 0;
    }
    end_copy(eval, key, &blob.record);
    tags::changed(eval, key, &blob.record.tags, &Tags::default());
    let is_kept = chain::fate(&delete.guard, &blob.record, eval.now)? != Fate::Dropped;
    let of = InTheWay { state: DeletedState::Blob, ..InTheWay::of(Some(&blob)) };
    let way = chain::make_way(eval, key, &delete.guard, of).await?;
    dropped.extend(way.dropped);
    garbage::write(eval, key, &dropped, &[]);
    eval.out.delete(Family::Main, key.as_bytes().clone());
    if let Some(version) = marker {
        chain::mark(eval, key, version, snapshots);
    }
    Ok(Deleted { version: marker, is_marker: marker.is_some(), is_kept })
}

/// Whether a snapshot or a version that is removed stays for some time.
fn is_kept(guard: &Guard, record: &BlobRecord, now: Timestamp) -> Result<bool, Refused> {
    Ok(chain::fate_of_removed(guard, record, now)? != Fate::Dropped)
}

/// Writes a delete marker where no blob is current.
async fn mark_missing(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
) -> Result<Deleted, Error> {
    guard::create(&delete.guard, None::<&BlobRecord>, eval.now)?;
    let snapshots = chain::newest(eval.view, key).await?.map_or(0, |v| v.blob.record.snapshots);
    let way = chain::make_way(eval, key, &delete.guard, InTheWay::of(None)).await?;
    garbage::write(eval, key, &way.dropped, &[]);
    let version = chain::made_by(&delete.guard, eval.now);
    if let Some(version) = version {
        chain::mark(eval, key, version, snapshots);
    }
    Ok(Deleted { version, is_marker: true, is_kept: true })
}

/// Ends the pending copy of a blob that is no longer current.
fn end_copy(eval: &mut Evaluation<'_>, key: &RoutingKey, record: &BlobRecord) {
    if guard::is_copying(record) {
        eval.out.delete(Family::Work, keys::copy_work(key));
    }
}

/// Removes one version permanently. If it was the newest, the next one becomes current.
async fn version(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
    revision: Revision,
) -> Result<Deleted, Error> {
    let found = revision::find(eval.view, key, revision).await?;
    let blob = found.ok_or(Refused::VersionNotFound)?;
    guard::change(&delete.guard, &blob.record, eval.now)?;
    let deleted_at = blob.record.last_modified;
    let is_marker = blob.record.is_delete_marker();
    let version = blob.record.version();
    if blob.place() == Place::Main && matches!(delete.scope, DeleteScope::FormerVersion(_)) {
        return Err(Refused::CurrentVersion.into());
    }
    let is_kept = is_kept(&delete.guard, &blob.record, eval.now)?;
    let deleted = Deleted { version, is_marker, is_kept };
    match blob.place() {
        Place::Version(time) => {
            let is_head = blob_row::load(eval.view, key).await?.is_none()
                && chain::newest(eval.view, key).await?.is_some_and(|head| head.time == time);
            let snapshots = blob.record.snapshots;
            let mut dropped =
                chain::dispose(eval, key, &delete.guard, Version { time, blob }).await?;
            if is_head {
                let head = Head { gone: Some(time), stays_headless: !is_marker, snapshots };
                dropped.extend(succeed(eval, key, &head, &Tags::default()).await?);
            }
            garbage::write(eval, key, &dropped, &[]);
        }
        Place::Main => remove_current(eval, key, &delete.guard, blob).await?,
        Place::Snapshot(_) | Place::Deleted(_) => return Err(Refused::VersionNotFound.into()),
    }
    // A blob that was written before versions were kept is the null version.
    let null = VersionId::null(deleted_at);
    let version = deleted.version.or_else(|| delete.guard.protection.versioning.map(|_| null));
    Ok(Deleted { version, ..deleted })
}

/// Removes the current blob by its version.
async fn remove_current(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    blob: Blob,
) -> Result<(), Error> {
    end_copy(eval, key, &blob.record);
    eval.out.delete(Family::Main, key.as_bytes().clone());
    let BlobRecord { snapshots, tags, .. } = blob.record.clone();
    let mut dropped = match chain::fate_of_removed(guard, &blob.record, eval.now)? {
        Fate::Restorable(period) => {
            let at = match blob.record.version() {
                Some(VersionId { time, .. }) => DeletedKey { state: DeletedState::Version, time },
                // It was written before versions were kept.
                None => DeletedKey { state: DeletedState::Blob, time: eval.now },
            };
            restorable::keep(eval, key, (at, period), blob).await?;
            Vec::new()
        }
        Fate::Dropped | Fate::Kept(_) => {
            let layout = blob.content(key)?.layout;
            layout::discard(eval, key, &layout).await?
        }
    };
    let head = Head { gone: None, stays_headless: false, snapshots };
    dropped.extend(succeed(eval, key, &head, &tags).await?);
    garbage::write(eval, key, &dropped, &[]);
    Ok(())
}

/// Makes the next version current. `tags` are those of the current blob before. Returns the
/// locations of staged blocks that do not fit it.
async fn succeed(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    head: &Head,
    tags: &Tags,
) -> Result<Vec<Location>, Error> {
    match chain::promote(eval, key, head).await? {
        Heir::Nothing if head.snapshots > 0 => Err(Refused::SnapshotsPresent.into()),
        Heir::Nothing | Heir::Headless => {
            tags::changed(eval, key, tags, &Tags::default());
            Ok(Vec::new())
        }
        Heir::Promoted(blob) => {
            // A commit writes at most one work row about tags.
            tags::changed(eval, key, tags, &blob.record.tags);
            eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
            staged::discard_unfit(eval, key, &blob).await
        }
    }
}

/// Removes one snapshot. Snapshots have no leases, and a lease on the blob does not protect them.
async fn one_snapshot(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
    taken: Timestamp,
) -> Result<Deleted, Error> {
    let mut head = head(eval, key).await?;
    let found = blob_row::load_row(eval.view, key, Place::Snapshot(taken)).await?;
    let found = found.ok_or(Refused::BlobNotFound)?;
    guard::change(&delete.guard, &found.record, eval.now)?;
    let is_kept = is_kept(&delete.guard, &found.record, eval.now)?;
    let dropped = snapshot::dispose(eval, key, &delete.guard, found).await?;
    garbage::write(eval, key, &dropped, &[]);
    head.record.snapshots = head.record.snapshots.saturating_sub(1);
    head.store(eval, key);
    Ok(Deleted { is_kept, ..Deleted::default() })
}

/// Removes all snapshots, and leaves the blob.
async fn all_snapshots(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
) -> Result<Deleted, Error> {
    let mut blob = blob_row::current(eval, key).await?.ok_or(Refused::BlobNotFound)?;
    guard::change(&delete.guard, &blob.record, eval.now)?;
    let dropped = snapshot::dispose_all(eval, key, &delete.guard).await?;
    garbage::write(eval, key, &dropped, &[]);
    blob.record.snapshots = 0;
    blob.store(eval, key);
    let is_kept = delete.guard.protection.restorable_for.is_some();
    Ok(Deleted { is_kept, ..Deleted::default() })
}

/// The row that counts the snapshots: the current blob, else its newest version.
async fn head(eval: &Evaluation<'_>, key: &RoutingKey) -> Result<Blob, Error> {
    if let Some(blob) = blob_row::current(eval, key).await? {
        return Ok(blob);
    }
    let newest = chain::newest(eval.view, key).await?;
    Ok(newest.ok_or(Refused::BlobNotFound)?.blob)
}

/// Removes rows of a blob except its uploads, versions first, until `changes` rows have changed.
/// The caller writes the garbage rows.
pub(super) async fn remove_rows(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    changes: usize,
) -> Result<Removed, Error> {
    let Removed { mut dropped, has_more } = chain::remove_all(eval, key, changes).await?;
    if has_more {
        return Ok(Removed { dropped, has_more });
    }
    let restorable = restorable::remove_all(eval, key, changes).await?;
    dropped.extend(restorable.dropped);
    if restorable.has_more {
        return Ok(Removed { dropped, has_more: true });
    }
    dropped.extend(staged::discard(eval, key).await?);
    dropped.extend(snapshot::remove_all(eval, key).await?);
    if let Some(blob) = blob_row::current(eval, key).await? {
        end_copy(eval, key, &blob.record);
        tags::changed(eval, key, &blob.record.tags, &Tags::default());
        let layout = blob.content(key)?.layout;
        dropped.extend(layout::discard(eval, key, &layout).await?);
        eval.out.delete(Family::Main, key.as_bytes().clone());
    }
    Ok(Removed { dropped, has_more: false })
}
