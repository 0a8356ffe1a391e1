//! The versions of one blob, for List Blobs.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeSet;

use crate::index::api::Error;
use crate::index::objects::blob_row;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::restorable::Restorables;
use crate::index::objects::values;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Times of versions that one pass over a chain keeps.
const TIMES_MAX: usize = 10_000;

/// The oldest versions of a blob after a time, without delete markers.
pub(super) struct Oldest {
    pub(super) times: BTreeSet<Timestamp>,
    /// Whether there are newer ones.
    pub(super) has_more: bool,
}

/// The oldest versions of a blob after a time.
pub(super) async fn oldest(
    view: &dyn Rows,
    key: &RoutingKey,
    after: Option<Timestamp>,
) -> Result<Oldest, Error> {
    let mut oldest = Oldest { times: BTreeSet::new(), has_more: false };
    let (from, to) = (keys::versions_start(key), keys::after(key));
    let mut rows = Cursor::new(view, Family::Versions, from, Some(to));
    while let Some(row) = rows.take().await? {
        let time = keys::parse_version_time(&row.key, key)?;
        if after.is_some_and(|after| time <= after) {
            break;
        }
        if is_delete_marker(&row)? {
            continue;
        }
        oldest.times.insert(time);
        if oldest.times.len() > TIMES_MAX {
            oldest.times.pop_last();
            oldest.has_more = true;
        }
    }
    Ok(oldest)
}

/// The time of the newest version of a blob that is not current.
pub(super) async fn newest(view: &dyn Rows, key: &RoutingKey) -> Result<Option<Timestamp>, Error> {
    let (from, to) = (keys::versions_start(key), keys::after(key));
    let row = Cursor::new(view, Family::Versions, from, Some(to)).take().await?;
    row.map(|row| keys::parse_version_time(&row.key, key)).transpose()
}

/// Whether Undelete Blob would make a deleted blob current: no blob is current, and none was
/// deleted later.
pub(super) async fn is_base(
    view: &dyn Rows,
    key: &RoutingKey,
    at: DeletedKey,
    now: Timestamp,
) -> Result<bool, Error> {
    if blob_row::load(view, key).await?.is_some() {
        return Ok(false);
    }
    let mut blobs = Restorables::of_state(view, key, DeletedState::Blob);
    blobs.seek(DeletedKey { time: at.time.next(), ..at });
    while let Some(later) = blobs.next().await? {
        if later.is_left(now) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The newest version of a blob without a current one; a soft-deleted version if no other is left.
pub(super) async fn only_versions(
    view: &dyn Rows,
    key: &RoutingKey,
    now: Timestamp,
) -> Result<Option<Row>, Error> {
    if blob_row::load(view, key).await?.is_some() {
        return Ok(None);
    }
    let (from, to) = (keys::versions_start(key), keys::after(key));
    let mut rows = Cursor::new(view, Family::Versions, from, Some(to));
    while let Some(row) = rows.take().await? {
        if !is_delete_marker(&row)? {
            return Ok(Some(row));
        }
    }
    let mut newest = None;
    let mut deleted = Restorables::of_state(view, key, DeletedState::Version);
    while let Some(of) = deleted.next().await? {
        if of.is_left(now) {
            newest = Some(Row { key: keys::deleted(key, of.at), value: of.blob.encode() });
        }
    }
    Ok(newest)
}

/// Whether the row of a version is a delete marker.
pub(super) fn is_delete_marker(row: &Row) -> Result<bool, Error> {
    let (record, _) =
        values::decode_record_head::<BlobRecord>(Family::Versions, &row.key, &row.value)?;
    Ok(record.is_delete_marker())
}
