//! Soft-deleted content: rows beside a blob that can be restored until their period ends.
//!
//! They are separate from snapshots and versions, so that only lists, Undelete Blob and reclaim see
//! them. A row keeps its bytes: a deletion shares nothing.
//!
//! Source: "Soft delete for blobs".

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::EndedPage;
use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::layout;
use crate::index::objects::values;
use crate::index::objects::values::DeletedWork;
use crate::index::record::CopyStatus;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::SoftDelete;
use crate::types::Timestamp;

/// The row changes after which a step that removes rows ends. Blobs with long layouts make long
/// batches.
const CHANGES_MAX: usize = 2_000;

/// Unexpired rows of each state that one step examines. Later rows mostly expire later.
const LEFT_MAX: usize = 10_000;

/// Locations that one commit removes, about.
pub(super) const LOCATIONS_MAX: usize = 10_000;

/// The period for which a blob that is deleted now can be restored; `None` if it cannot.
pub(super) fn period(guard: &Guard, now: Timestamp) -> Option<SoftDelete> {
    let restorable_for = guard.protection.restorable_for?;
    Some(SoftDelete { since: now, until: now.plus(restorable_for) })
}

/// Removes the fields that only a current blob has.
pub(super) fn retire(blob: &mut Blob, now: Timestamp) {
    blob.record.lease = None;
    blob.record.snapshots = 0;
    if let Some(copy) = blob.record.copy.as_mut().filter(|copy| copy.status == CopyStatus::Pending)
    {
        // A pending copy writes only to the current blob.
        (copy.status, copy.completed) = (CopyStatus::Aborted, Some(now));
    }
}

/// Writes the row of a blob that would be removed as a soft-deleted one. The caller removes the old
/// row.
pub(super) async fn keep(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    (at, period): (DeletedKey, SoftDelete),
    mut blob: Blob,
) -> Result<(), Error> {
    retire(&mut blob, eval.now);
    blob.record.set_deleted(Some(period));
    eval.out.put(Family::Versions, keys::deleted(key, at), blob.encode());
    note(eval, key, period.until).await
}

/// Notes in the work row of a blob or a container when its next soft-deleted row expires.
pub(super) async fn note(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    until: Timestamp,
) -> Result<(), Error> {
    let row = keys::deleted_work(key);
    let before = match eval.view.get(Family::Work, &row).await? {
        Some(value) => values::decode::<DeletedWork>(Family::Work, &row, &value)?.until,
        None => until,
    };
    let work = DeletedWork { until: before.min(until) };
    eval.out.put(Family::Work, row, values::encode(&work));
    Ok(())
}

/// A soft-deleted row that can be restored.
#[derive(Clone, Debug)]
pub(super) struct Restorable {
    /// Its key.
    pub(super) at: DeletedKey,
    /// Its row.
    pub(super) blob: Blob,
}

impl Restorable {
    /// Until when it can be restored.
    fn until(&self) -> Timestamp {
        self.blob.record.deleted().map_or(Timestamp::ZERO, |deleted| deleted.until)
    }

    /// Whether it can be restored at this time.
    pub(super) fn is_left(&self, now: Timestamp) -> bool {
        now < self.until()
    }
}

/// A walk over the soft-deleted rows of a blob, in key order.
pub(super) struct Restorables<'a> {
    key: &'a RoutingKey,
    rows: Cursor<'a>,
}

impl<'a> Restorables<'a> {
    /// A walk over the rows of one state.
    pub(super) fn of_state(view: &'a dyn Rows, key: &'a RoutingKey, state: DeletedState) -> Self {
        let (from, to) = keys::deleted_of_state(key, state);
        Self { key, rows: Cursor::new(view, Family::Versions, from, Some(to)) }
    }

    /// A walk over all of it.
    pub(super) fn new(view: &'a dyn Rows, key: &'a RoutingKey) -> Self {
        let (from, to) = (keys::deleted_start(key), keys::deleted_end(key));
        Self { key, rows: Cursor::new(view, Family::Versions, from, Some(to)) }
    }

    /// Goes on at or after this one.
    pub(super) fn seek(&mut self, at: DeletedKey) {
        self.rows.seek(&keys::deleted(self.key, at));
    }

    /// The next.
    pub(super) async fn next(&mut self) -> Result<Option<Restorable>, Error> {
        let Some(row) = self.rows.take().await? else { return Ok(None) };
        let VersionKey::Deleted(at) = keys::parse_version(&row.key, self.key)? else {
            return Err(keys::corrupt(Family::Versions, &row.key, "not a deleted row"));
        };
        let blob = blob_row::decode(&row.key, &row.value, Place::Deleted(at))?;
        Ok(Some(Restorable { at, blob }))
    }
}

/// Reads a soft-deleted row.
pub(super) async fn load(
    view: &dyn Rows,
    key: &RoutingKey,
    at: DeletedKey,
) -> Result<Option<Restorable>, Error> {
    let found = blob_row::load_row(view, key, Place::Deleted(at)).await?;
    Ok(found.map(|blob| Restorable { at, blob }))
}

/// Removes a soft-deleted row permanently. Returns the locations that become garbage.
pub(super) async fn remove(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    deleted: &Restorable,
) -> Result<Vec<Location>, Error> {
    let layout = deleted.blob.content(key)?.layout;
    let dropped = layout::discard(eval, key, &layout).await?;
    eval.out.delete(Family::Versions, keys::deleted(key, deleted.at));
    Ok(dropped)
}

/// Removes the soft-deleted rows of a blob that can no longer be restored, or `all` of them, in
/// steps. The work row has the time at which the next row expires.
pub(super) async fn expire(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    all: bool,
) -> Result<WriteReply, Error> {
    let mut dropped = Vec::new();
    let mut next: Option<Timestamp> = None;
    for state in DeletedState::ALL {
        let mut rows = Restorables::of_state(eval.view, key, state);
        let mut left = 0;
        while left < LEFT_MAX
            && let Some(deleted) = rows.next().await?
        {
            let is_full = eval.out.changes.len() >= CHANGES_MAX || dropped.len() >= LOCATIONS_MAX;
            if !all && deleted.is_left(eval.now) {
                left += 1;
            } else if !is_full {
                dropped.extend(remove(eval, key, &deleted).await?);
                continue;
            }
            let until = deleted.until();
            next = Some(next.map_or(until, |next| next.min(until)));
            if is_full {
                break;
            }
        }
    }
    garbage::write(eval, key, &dropped, &[]);
    let row = keys::deleted_work(key);
    match next {
        Some(until) => eval.out.put(Family::Work, row, values::encode(&DeletedWork { until })),
        None => eval.out.delete(Family::Work, row),
    }
    Ok(WriteReply::Done)
}

/// Returns blobs with expired soft-deleted rows, and where to continue.
pub(super) async fn ended(
    view: &dyn Rows,
    from: &Bytes,
    now: Timestamp,
    limit: usize,
) -> Result<EndedPage, Error> {
    let mut rows = Cursor::new(view, Family::Work, from.clone(), None).pausing();
    let mut blobs = Vec::new();
    while let Some(row) = rows.take().await? {
        let key = keys::routing_key(Family::Work, &row.key)?;
        if !keys::is_deleted_work(&row.key, &key) {
            continue;
        }
        let work: DeletedWork = values::decode(Family::Work, &row.key, &row.value)?;
        if work.until > now {
            continue;
        }
        if blobs.len() >= limit {
            return Ok(EndedPage { blobs, next: Some(row.key) });
        }
        blobs.push(key);
    }
    Ok(EndedPage { blobs, next: rows.paused().cloned() })
}

/// The removed rows of a blob.
pub(super) struct Removed {
    /// The locations that it owned.
    pub(super) dropped: Vec<Location>,
    /// Whether there is more.
    pub(super) has_more: bool,
}

/// Removes all soft-deleted rows of a blob, until `changes` rows have changed.
pub(super) async fn remove_all(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    changes: usize,
) -> Result<Removed, Error> {
    let mut dropped = Vec::new();
    let mut rows = Restorables::new(eval.view, key);
    while let Some(deleted) = rows.next().await? {
        if eval.out.changes.len() >= changes || dropped.len() >= LOCATIONS_MAX {
            return Ok(Removed { dropped, has_more: true });
        }
        dropped.extend(remove(eval, key, &deleted).await?);
    }
    let row = keys::deleted_work(key);
    if eval.view.get(Family::Work, &row).await?.is_some() {
        eval.out.delete(Family::Work, row);
    }
    Ok(Removed { dropped, has_more: false })
}
