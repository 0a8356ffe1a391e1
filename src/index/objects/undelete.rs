//! Undelete Blob, and the permanent deletion of soft-deleted rows before they expire.
//!
//! Source: "Undelete Blob"; "Delete Blob", "Permanent delete".

#![deny(clippy::indexing_slicing)]

use crate::index::api::DeleteBlob;
use crate::index::api::Deleted;
use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::UndeleteBlob;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::chain;
use crate::index::objects::chain::Version;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::restorable;
use crate::index::objects::restorable::Restorable;
use crate::index::objects::restorable::Restorables;
use crate::index::objects::revision;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::rows::Family;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::VersionId;

/// Rows that one commit restores.
const ROWS_MAX: usize = 1_000;

/// Undelete Blob: restores the current blob, if there is none, and all snapshots and versions. A
/// version does not become current. Former current blobs that a later one replaced become
/// snapshots. Answers whether there is more to restore.
pub(super) async fn undelete(
    eval: &mut Evaluation<'_>,
    undelete: &UndeleteBlob,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&undelete.key);
    let mut found = find(eval, &key).await?;
    let current = blob_row::current(eval, &key).await?;
    let newest = chain::newest(eval.view, &key).await?;
    if let Some(current) = &current {
        // A lease does not protect snapshots from deletion, nor from coming back.
        guard::change_beside_lease(&undelete.guard, &current.record, eval.now)?;
    }
    let has_null = current.as_ref().is_some_and(is_null_version)
        || chain::null_time(eval.view, &key).await?.is_some();
    let mut head = Head { current, newest, has_null };
    if let Some(base) = found.base.take()
        && !head.take_base(eval, &key, &base).await?
    {
        found.rows.push(base);
    }
    let mut snapshots = 0;
    // Newest first.
    for Restorable { at, mut blob } in found.rows.into_iter().rev() {
        eval.out.delete(Family::Versions, keys::deleted(&key, at));
        blob.record.set_deleted(None);
        if at.state == DeletedState::Version {
            head.take_version(eval, &key, Version { time: at.time, blob });
        } else {
            blob.record.set_version(None);
            eval.out.put(Family::Versions, keys::snapshot(&key, at.time), blob.encode());
            snapshots += 1;
        }
    }
    head.store(eval, &key, snapshots)?;
    Ok(WriteReply::Undeleted { has_more: found.has_more })
}

/// The rows that can be restored.
struct Found {
    /// The blob that was deleted last.
    base: Option<Restorable>,
    /// Others.
    rows: Vec<Restorable>,
    has_more: bool,
}

/// Finds what one commit restores. The blob that was deleted last is always among it: it counts the
/// snapshots.
async fn find(eval: &Evaluation<'_>, key: &RoutingKey) -> Result<Found, Error> {
    let mut found = Found { base: None, rows: Vec::new(), has_more: false };
    let mut blobs = Restorables::of_state(eval.view, key, DeletedState::Blob);
    while let Some(deleted) = blobs.next().await? {
        if deleted.is_left(eval.now) {
            found.base = Some(deleted);
        }
    }
    let base = found.base.as_ref().map(|base| base.at);
    let mut all = Restorables::new(eval.view, key);
    while let Some(deleted) = all.next().await? {
        if Some(deleted.at) == base || !deleted.is_left(eval.now) {
            continue;
        }
        if found.rows.len() >= ROWS_MAX {
            found.has_more = true;
            break;
        }
        found.rows.push(deleted);
    }
    Ok(found)
}

/// The newest row of a blob, which counts its snapshots.
struct Head {
    current: Option<Blob>,
    newest: Option<Version>,
    /// Whether one of the versions is the null version.
    has_null: bool,
}

impl Head {
    /// Makes a deleted blob current if no blob is current and there is no version. Returns whether
    /// it did. If the null version's delete marker is newer than all versions, it is removed.
    async fn take_base(
        &mut self,
        eval: &mut Evaluation<'_>,
        key: &RoutingKey,
        base: &Restorable,
    ) -> Result<bool, Error> {
        if self.current.is_some() || !self.gives_way(eval, key, &base.blob).await? {
            return Ok(false);
        }
        let blob = base.blob.clone().moved(Place::Main);
        let mut blob = chain::as_current(eval, key, blob)?;
        if let Some(marker) = self.newest.take() {
            blob.record.snapshots = marker.blob.record.snapshots;
            chain::forget_row(eval, key, &marker);
        }
        eval.out.delete(Family::Versions, keys::deleted(key, base.at));
        blob.record.set_deleted(None);
        tags::changed(eval, key, &Tags::default(), &blob.record.tags);
        let dropped = staged::discard_unfit(eval, key, &blob).await?;
        garbage::write(eval, key, &dropped, &[]);
        self.has_null = is_null_version(&blob);
        self.current = Some(blob);
        Ok(true)
    }

    /// Whether a blob may become current: there are no versions, or only older ones below the null
    /// version's delete marker.
    async fn gives_way(
        &self,
        eval: &Evaluation<'_>,
        key: &RoutingKey,
        blob: &Blob,
    ) -> Result<bool, Error> {
        let Some(newest) = &self.newest else { return Ok(true) };
        let record = &newest.blob.record;
        if !record.is_delete_marker() || !record.version().is_some_and(|of| of.is_null) {
            return Ok(false);
        }
        let own = blob.record.version().map_or(blob.record.last_modified, |version| version.time);
        let next = chain::newest_but(eval.view, key, Some(newest.time)).await?;
        Ok(next.is_none_or(|next| next.time < own))
    }

    /// Restores a version. If it is the newest, it counts the snapshots from now on.
    fn take_version(&mut self, eval: &mut Evaluation<'_>, key: &RoutingKey, version: Version) {
        let Version { time, blob } = version;
        let mut blob = blob.moved(Place::Version(time));
        let is_null = !self.has_null && is_null_version(&blob);
        self.has_null |= is_null;
        let id = VersionId { time, is_null };
        blob.record.set_version(Some(id));
        let is_newest = self.newest.as_ref().is_none_or(|newest| newest.time < time);
        if is_newest && self.current.is_none() {
            if let Some(former) = &mut self.newest {
                blob.record.snapshots = std::mem::take(&mut former.blob.record.snapshots);
                former.blob.store(eval, key);
            }
            self.newest = Some(Version { time, blob: blob.clone() });
        }
        chain::write_version(eval, key, id, &blob);
    }

    /// Writes the newest row with the number of snapshots.
    fn store(
        self,
        eval: &mut Evaluation<'_>,
        key: &RoutingKey,
        snapshots: u32,
    ) -> Result<(), Error> {
        let newest = self.newest.map(|newest| newest.blob);
        let mut head = self.current.or(newest).ok_or(Refused::BlobNotFound)?;
        head.record.snapshots = head.record.snapshots.saturating_add(snapshots);
        head.store(eval, key);
        Ok(())
    }
}

fn is_null_version(blob: &Blob) -> bool {
    blob.record.version().is_none_or(|version| version.is_null)
}

/// Removes a soft-deleted snapshot or version before it expires.
pub(super) async fn end(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    delete: &DeleteBlob,
    revision: Revision,
) -> Result<Deleted, Error> {
    let states = match revision {
        Revision::Snapshot(time) => {
            vec![(DeletedState::Snapshot, time), (DeletedState::Blob, time)]
        }
        Revision::Version(time) => vec![(DeletedState::Version, time)],
        Revision::Current | Revision::Null => return Err(Refused::NotSoftlyDeleted.into()),
    };
    for (state, time) in states {
        let found = restorable::load(eval.view, key, DeletedKey { state, time }).await?;
        if let Some(deleted) = found.filter(|deleted| deleted.is_left(eval.now)) {
            guard::change(&delete.guard, &deleted.blob.record, eval.now)?;
            let dropped = restorable::remove(eval, key, &deleted).await?;
            garbage::write(eval, key, &dropped, &[]);
            return Ok(Deleted::default());
        }
    }
    let is_there = revision::find(eval.view, key, revision).await?.is_some();
    Err(if is_there { Refused::NotSoftlyDeleted } else { Refused::BlobNotFound }.into())
}
