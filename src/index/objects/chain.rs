//! The chain of versions of a blob: decides whether the row that a change replaces is kept, and
//! which version is current (ADR 0038).
//!
//! The main row is the current blob. Former ones, and delete markers, are rows of the versions
//! family, newest first. A blob whose newest version is a delete marker has no main row.
//!
//! Invariants: a version's bytes have one owner; a row that becomes a version keeps its bytes. At
//! most one version is S3's null version; if it is not current, a row of its own names it. The
//! snapshots of a blob are counted in its newest row: the main row, else the newest version.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::Guard;
use crate::index::api::Refused;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::blob_row::Place;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::layout;
use crate::index::objects::layout::SharedLayout;
use crate::index::objects::lock;
use crate::index::objects::restorable;
use crate::index::objects::restorable::LOCATIONS_MAX;
use crate::index::objects::restorable::Removed;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::NullVersion;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::Crc64;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::SoftDelete;
use crate::types::Timestamp;
use crate::types::VersionId;
use crate::types::Versioning;

/// The fate of a blob that is replaced or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is removed with its bytes.
    Dropped,
    /// It stays as a version.
    Kept(VersionId),
    /// It can be restored for some time.
    Restorable(SoftDelete),
}

/// Decides the fate of a blob that is replaced or deleted at `now`. No other code decides this. The
/// null version is replaced while versioning is suspended.
///
/// # Errors
/// As [`fate_of_removed`], if it would not be kept as a version.
pub(super) fn fate(guard: &Guard, record: &BlobRecord, now: Timestamp) -> Result<Fate, Refused> {
    let version = record.version().unwrap_or_else(|| VersionId::null(record.last_modified));
    match guard.protection.versioning {
        Some(Versioning::Enabled) => Ok(Fate::Kept(version)),
        Some(Versioning::Suspended) if !version.is_null => Ok(Fate::Kept(version)),
        Some(Versioning::Suspended) | None => fate_of_removed(guard, record, now),
    }
}

/// Decides the fate of a snapshot or version that is removed, or of a blob that would not be kept.
///
/// # Errors
/// [`Refused::LegalHold`], [`Refused::Retained`] if it is held.
pub(super) fn fate_of_removed(
    guard: &Guard,
    record: &BlobRecord,
    now: Timestamp,
) -> Result<Fate, Refused> {
    lock::may_remove(guard, record, now)?;
    if record.is_delete_marker() {
        return Ok(Fate::Dropped);
    }
    Ok(restorable::period(guard, now).map_or(Fate::Dropped, Fate::Restorable))
}

/// The version that a write makes at `now`; `None` where versions are not kept.
pub(super) fn made_by(guard: &Guard, now: Timestamp) -> Option<VersionId> {
    let versioning = guard.protection.versioning?;
    Some(VersionId { time: now, is_null: versioning == Versioning::Suspended })
}

/// The rows that a write finds once no blob is in its way.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// The locations that became garbage.
    pub(super) dropped: Vec<Location>,
    /// The version that the write makes.
    version: Option<VersionId>,
    /// Snapshots of the blob, if it had no main row.
    snapshots: Option<u32>,
}

impl Way {
    /// Writes the fields that depend on the chain, and the protection, into the record of the new
    /// blob.
    ///
    /// # Errors
    /// Those of [`lock::protect`].
    pub(super) fn finish(
        &self,
        record: &mut BlobRecord,
        guard: &Guard,
        now: Timestamp,
    ) -> Result<(), Refused> {
        record.set_version(self.version);
        if let Some(snapshots) = self.snapshots {
            record.snapshots = snapshots;
        }
        lock::protect(record, guard, now)
    }
}

/// A blob that a write replaces or deletes.
#[derive(Clone, Copy)]
pub(super) struct InTheWay<'a> {
    /// The current blob.
    pub(super) old: Option<&'a Blob>,
    /// Its blocks, if the caller has read them.
    pub(super) blocks: Option<&'a [Entry]>,
    /// The state under which it can be restored.
    pub(super) state: DeletedState,
}

impl<'a> InTheWay<'a> {
    /// A blob whose blocks were not read.
    pub(super) const fn of(old: Option<&'a Blob>) -> Self {
        Self { old, blocks: None, state: DeletedState::Snapshot }
    }
}

/// Removes the blob that a write replaces from the main row, or makes a version of it. The caller
/// writes the main row.
pub(super) async fn make_way(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    of: InTheWay<'_>,
) -> Result<Way, Error> {
    let version = made_by(guard, eval.now);
    let mut way = Way { version, ..Way::default() };
    match of.old {
        Some(old) => way.dropped = displace(eval, key, guard, (old, of)).await?,
        None if version.is_some() => {
            way.snapshots = newest(eval.view, key).await?.map(|found| found.blob.record.snapshots);
        }
        None => {}
    }
    if version.is_some_and(|version| version.is_null) {
        way.dropped.extend(drop_null(eval, key, guard).await?);
    }
    Ok(way)
}

/// Makes a version of the current blob, or drops its content. Returns the locations that become
/// garbage. The main row is left to the caller.
async fn displace(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    (old, of): (&Blob, InTheWay<'_>),
) -> Result<Vec<Location>, Error> {
    match fate(guard, &old.record, eval.now)? {
        Fate::Dropped => {}
        Fate::Kept(version) => {
            let dropped =
                if version.is_null { drop_null(eval, key, guard).await? } else { Vec::new() };
            keep(eval, key, version, old.clone());
            return Ok(dropped);
        }
        Fate::Restorable(period) => {
            let at = DeletedKey { state: of.state, time: eval.now };
            restorable::keep(eval, key, (at, period), old.clone()).await?;
            return Ok(Vec::new());
        }
    }
    let layout = old.content(key)?.layout;
    let dropped = match (of.blocks, &layout) {
        (None, _) | (Some(_), Layout::Whole(_)) => layout::owned(eval, key, &layout).await?,
        (Some(blocks), _) => layout::owned_by(eval, blocks),
    };
    layout::remove_rows(eval, key, &layout);
    Ok(dropped)
}

/// Writes a blob as a version.
pub(super) fn keep(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    version: VersionId,
    mut blob: Blob,
) {
    restorable::retire(&mut blob, eval.now);
    blob.record.set_version(Some(version));
    write_version(eval, key, version, &blob);
}

/// Writes the row of a version.
pub(super) fn write_version(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    version: VersionId,
    blob: &Blob,
) {
    eval.out.put(Family::Versions, keys::version(key, version.time), blob.encode());
    if version.is_null {
        let null = NullVersion { committed: version.time };
        eval.out.put(Family::Versions, keys::null_version(key), values::encode(&null));
    }
}

/// Removes the null version, unless it is the current blob. Returns the locations that become
/// garbage.
async fn drop_null(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
) -> Result<Vec<Location>, Error> {
    let Some(time) = null_time(eval.view, key).await? else { return Ok(Vec::new()) };
    let found = blob_row::load_row(eval.view, key, Place::Version(time)).await?;
    let row = keys::version(key, time);
    let blob = found.ok_or_else(|| keys::corrupt(Family::Versions, &row, "no null version"))?;
    dispose(eval, key, guard, Version { time, blob }).await
}

/// The time of the null version that is not current.
pub(super) async fn null_time(
    view: &dyn Rows,
    key: &RoutingKey,
) -> Result<Option<Timestamp>, Error> {
    let row = keys::null_version(key);
    let Some(value) = view.get(Family::Versions, &row).await? else { return Ok(None) };
    let null: NullVersion = values::decode(Family::Versions, &row, &value)?;
    Ok(Some(null.committed))
}

/// A version that is not current.
#[derive(Debug)]
pub(super) struct Version {
    /// When it was committed.
    pub(super) time: Timestamp,
    /// Its row.
    pub(super) blob: Blob,
}

/// The newest version that is not current, or delete marker.
pub(super) async fn newest(view: &dyn Rows, key: &RoutingKey) -> Result<Option<Version>, Error> {
    newest_but(view, key, None).await
}

/// The newest version that is neither current nor of this time.
pub(super) async fn newest_but(
    view: &dyn Rows,
    key: &RoutingKey,
    but: Option<Timestamp>,
) -> Result<Option<Version>, Error> {
    let mut rows =
        Cursor::new(view, Family::Versions, keys::versions_start(key), Some(keys::after(key)));
    while let Some(row) = rows.take().await? {
        let time = keys::parse_version_time(&row.key, key)?;
        if Some(time) != but {
            let blob = blob_row::decode(&row.key, &row.value, Place::Version(time))?;
            return Ok(Some(Version { time, blob }));
        }
    }
    Ok(None)
}

/// Removes a version that is not current, or keeps it for some time. Returns the locations that
/// become garbage.
pub(super) async fn dispose(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    version: Version,
) -> Result<Vec<Location>, Error> {
    match fate_of_removed(guard, &version.blob.record, eval.now)? {
        Fate::Restorable(period) => {
            forget_row(eval, key, &version);
            let at = DeletedKey { state: DeletedState::Version, time: version.time };
            restorable::keep(eval, key, (at, period), version.blob).await?;
            Ok(Vec::new())
        }
        Fate::Dropped | Fate::Kept(_) => remove(eval, key, &version).await,
    }
}

/// Removes a version that is not current. Returns the locations that become garbage.
pub(super) async fn remove(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    version: &Version,
) -> Result<Vec<Location>, Error> {
    let layout = version.blob.content(key)?.layout;
    let dropped = layout::discard(eval, key, &layout).await?;
    forget_row(eval, key, version);
    Ok(dropped)
}

/// Removes the row of a version.
pub(super) fn forget_row(eval: &mut Evaluation<'_>, key: &RoutingKey, version: &Version) {
    eval.out.delete(Family::Versions, keys::version(key, version.time));
    if version.blob.record.version().is_some_and(|version| version.is_null) {
        eval.out.delete(Family::Versions, keys::null_version(key));
    }
}

/// Writes a delete marker, which is the newest version. The caller removes the main row.
pub(super) fn mark(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    version: VersionId,
    snapshots: u32,
) {
    let mut record =
        BlobRecord { snapshots, ..BlobRecord::new(eval.now, eval.now, 0, Crc64::EMPTY) };
    record.set_version(Some(version));
    record.set_delete_marker();
    let content = BlobContent { id_len: 0, layout: Layout::Whole(Content::Inline(Bytes::new())) };
    let row = keys::version(key, version.time);
    eval.out.put(Family::Versions, row, values::encode_blob(&record, &content));
    if version.is_null {
        let null = NullVersion { committed: version.time };
        eval.out.put(Family::Versions, keys::null_version(key), values::encode(&null));
    }
}

/// A blob that a change keeps as a version, while the current blob keeps the same content.
#[derive(Debug)]
pub(super) struct Fork {
    /// The version that it becomes.
    pub(super) version: VersionId,
    /// The blob.
    pub(super) blob: Blob,
}

/// Keeps a blob as a version and returns a new current blob with the same content, which both share
/// from now on. The caller writes the main row.
pub(super) async fn fork(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    fork: &Fork,
) -> Result<Blob, Error> {
    let BlobContent { id_len, layout } = fork.blob.content(key)?;
    let SharedLayout { kept, copy } = layout::share(eval, key, layout).await?;
    let former = fork.blob.clone().with_content(&BlobContent { id_len, layout: copy });
    replace_null(eval, key, guard, fork.version).await?;
    keep(eval, key, fork.version, former);
    let mut current = fork.blob.clone().with_content(&BlobContent { id_len, layout: kept });
    begin(eval, key, guard, &mut current.record).await?;
    Ok(current)
}

/// Removes the null version before another version is kept under that id. There is one only if a
/// write was evaluated with an older setting of its container.
pub(super) async fn replace_null(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    kept: VersionId,
) -> Result<(), Error> {
    if kept.is_null {
        let dropped = drop_null(eval, key, guard).await?;
        garbage::write(eval, key, &dropped, &[]);
    }
    Ok(())
}

/// Makes the record of a blob that was kept as a version that of a new version.
pub(super) async fn begin(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    guard: &Guard,
    record: &mut BlobRecord,
) -> Result<(), Error> {
    let made = made_by(guard, eval.now);
    if made.is_some_and(|made| made.is_null) {
        let dropped = drop_null(eval, key, guard).await?;
        garbage::write(eval, key, &dropped, &[]);
    }
    record.set_version(made);
    lock::protect_again(record, guard, eval.now)?;
    Ok(())
}

/// The newest revision after a version was removed.
#[derive(Debug)]
pub(super) enum Heir {
    /// Nothing is left.
    Nothing,
    /// The version that becomes current.
    Promoted(Box<Blob>),
    /// Versions, but no blob is current.
    Headless,
}

/// The newest row of a blob, which is removed.
#[derive(Debug)]
pub(super) struct Head {
    /// Its time, if it is not the current blob.
    pub(super) gone: Option<Timestamp>,
    /// Whether no version becomes current: the removed version was a restored one, neither current
    /// nor a delete marker.
    pub(super) stays_headless: bool,
    /// The number of snapshots of the blob.
    pub(super) snapshots: u32,
}

/// Makes the second-newest version current, when the newest row is removed. The caller removes that
/// row and writes or removes the main row.
pub(super) async fn promote(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    head: &Head,
) -> Result<Heir, Error> {
    let next = newest_but(eval.view, key, head.gone).await?;
    let Some(mut next) = next else { return Ok(Heir::Nothing) };
    next.blob.record.snapshots = head.snapshots;
    if next.blob.record.is_delete_marker() || head.stays_headless {
        next.blob.store(eval, key);
        return Ok(Heir::Headless);
    }
    forget_row(eval, key, &next);
    Ok(Heir::Promoted(Box::new(as_current(eval, key, next.blob)?)))
}

/// A blob as it becomes current again.
pub(super) fn as_current(
    eval: &Evaluation<'_>,
    key: &RoutingKey,
    blob: Blob,
) -> Result<Blob, Error> {
    let mut content = blob.content(key)?;
    let Layout::Pages { layers } = &mut content.layout else { return Ok(blob) };
    // Other versions and snapshots may have its layers too, so writes go to a new layer.
    layers.insert(0, eval.now.ticks());
    Ok(blob.with_content(&content))
}

/// Removes versions that are not current, until `changes` rows have changed or many locations are
/// dropped.
pub(super) async fn remove_all(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    changes: usize,
) -> Result<Removed, Error> {
    let mut dropped = Vec::new();
    let mut rows =
        Cursor::new(eval.view, Family::Versions, keys::versions_start(key), Some(keys::after(key)));
    while let Some(row) = rows.take().await? {
        if eval.out.changes.len() >= changes || dropped.len() >= LOCATIONS_MAX {
            return Ok(Removed { dropped, has_more: true });
        }
        let time = keys::parse_version_time(&row.key, key)?;
        let blob = blob_row::decode(&row.key, &row.value, Place::Version(time))?;
        dropped.extend(remove(eval, key, &Version { time, blob }).await?);
    }
    Ok(Removed { dropped, has_more: false })
}
