//! Row keys: a routing key, then a suffix that distinguishes the rows of one family. Layout:
//! `api-spec/keys.md`.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::rows::Family;
use crate::types::AccountId;
use crate::types::BlockId;
use crate::types::ContainerId;
use crate::types::RoutingKey;
use crate::types::Timestamp;
use crate::types::UploadId;

/// Bytes of a purge row's key: account, container 0, two zeros, container.
const PURGE_KEY_LEN: usize = 26;
const STAGED_SUMMARY: u8 = 0x00;
const STAGED_BLOCK: u8 = 0x01;
/// The first byte after the routing key in the keys of an upload and of its parts.
const STAGED_UPLOAD: u8 = 0x02;
/// The first byte after the routing key in the key of an upload that was completed.
const COMPLETED_UPLOAD: u8 = 0x03;
/// A byte above the first one of every number of a part.
const AFTER_PARTS: u8 = 0xFF;
/// The suffix of the row that names the null version of a blob.
const NULL_VERSION: u8 = 0x00;
/// The first byte after the routing key in the keys of soft-deleted snapshots. Former current blobs
/// and versions follow it; settings of containers have 01.
const DELETED_SNAPSHOT: u8 = 0x02;
const DELETED_BLOB: u8 = 0x03;
const DELETED_VERSION: u8 = 0x04;
/// A byte above those and below the first one of the time of every snapshot.
const AFTER_DELETED: u8 = 0x05;
/// The first byte after the routing key in the keys of versions is at least this one, and that in
/// the keys of snapshots is lower.
const VERSIONS_START: u8 = 0x80;
/// The first byte after the routing key of positions among versions that are listed by time. No
/// snapshot has so late a time.
const UP_BEGIN: u8 = 0x7F;
/// The first byte after the routing key in the key of a setting.
const SETTING: u8 = 0x01;
/// The kind of a work row: a change of tags.
const WORK_TAGS: u8 = 0x00;
/// The kind of a work row: a pending copy.
const WORK_COPY: u8 = 0x01;
/// The kind of a work row: soft-deleted rows that expire.
const WORK_DELETED: u8 = 0x02;

/// The key of the summary of a blob's staged blocks. It sorts before them, so that a walk over
/// blobs reads one row of each.
pub(in crate::index) fn staged_summary(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[STAGED_SUMMARY]])
}

/// The key of a staged block.
pub(in crate::index) fn staged_block(blob: &RoutingKey, id: &BlockId) -> Bytes {
    join(blob, &[&[STAGED_BLOCK], id.as_bytes()])
}

/// The start of the staged blocks of a blob, after the summary.
pub(in crate::index) fn staged_blocks_start(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[STAGED_BLOCK]])
}

/// The end of the staged blocks of a blob. Uploads follow.
pub(in crate::index) fn staged_blocks_end(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[STAGED_UPLOAD]])
}

/// The key of an upload, which has parts of its own.
pub(in crate::index) fn upload(blob: &RoutingKey, id: UploadId) -> Bytes {
    join(blob, &[&[STAGED_UPLOAD], id.as_bytes()])
}

/// The key of a part of an upload.
pub(in crate::index) fn part(blob: &RoutingKey, id: UploadId, number: u32) -> Bytes {
    join(blob, &[&[STAGED_UPLOAD], id.as_bytes(), &number.to_be_bytes()])
}

/// The first position after an upload and its parts.
pub(super) fn after_upload(blob: &RoutingKey, id: UploadId) -> Bytes {
    join(blob, &[&[STAGED_UPLOAD], id.as_bytes(), &[AFTER_PARTS]])
}

/// The key of an upload that was completed.
pub(in crate::index) fn completed_upload(blob: &RoutingKey, id: UploadId) -> Bytes {
    join(blob, &[&[COMPLETED_UPLOAD], id.as_bytes()])
}

/// An id that separates the uploads of a blob at a position among its rows: the uploads before the
/// position have ids up to this one, the others have higher ids.
pub(super) fn upload_before(position: &[u8], blob: &RoutingKey) -> UploadId {
    let suffix = position.get(blob.as_bytes().len()..).unwrap_or_default();
    let id = match suffix.split_first() {
        Some((&STAGED_UPLOAD, rest)) => match rest.split_first_chunk() {
            Some((id, [])) => u128::from_be_bytes(*id).saturating_sub(1),
            Some((id, _)) => u128::from_be_bytes(*id),
            None => 0,
        },
        Some((&COMPLETED_UPLOAD, _)) => u128::MAX,
        Some(_) | None => 0,
    };
    UploadId::from_bytes(id.to_be_bytes())
}

/// The start of the completed uploads of a blob, after its uploads. They are the last of its staged
/// rows.
pub(super) fn completed_uploads_start(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[COMPLETED_UPLOAD]])
}

/// The kinds of rows of the staged family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StagedKey {
    /// The summary.
    Summary,
    /// The block of this id.
    Block(BlockId),
    /// An upload.
    Upload(UploadId),
    /// The part of an upload with this number.
    Part(UploadId, u32),
    /// An upload that was completed.
    Completed(UploadId),
}

/// Parses the key of a staged row.
pub(crate) fn parse_staged(row: &Bytes, blob: &RoutingKey) -> Result<StagedKey, Error> {
    let suffix = row.get(blob.as_bytes().len()..).unwrap_or_default();
    match suffix.split_first() {
        Some((&STAGED_SUMMARY, [])) => Ok(StagedKey::Summary),
        Some((&STAGED_BLOCK, id)) => BlockId::from_bytes(id)
            .map(StagedKey::Block)
            .ok_or_else(|| corrupt(Family::Staged, row, "bad block id")),
        Some((&STAGED_UPLOAD, upload)) => {
            parse_upload(upload).ok_or_else(|| corrupt(Family::Staged, row, "bad upload id"))
        }
        Some((&COMPLETED_UPLOAD, id)) => (*id)
            .try_into()
            .map(|id| StagedKey::Completed(UploadId::from_bytes(id)))
            .map_err(|_| corrupt(Family::Staged, row, "bad upload id")),
        _ => Err(corrupt(Family::Staged, row, "bad key")),
    }
}

fn parse_upload(bytes: &[u8]) -> Option<StagedKey> {
    let (id, number) = bytes.split_first_chunk()?;
    let id = UploadId::from_bytes(*id);
    match number {
        [] => Some(StagedKey::Upload(id)),
        number => Some(StagedKey::Part(id, u32::from_be_bytes(number.try_into().ok()?))),
    }
}

/// The key of a segment of a long layout. `generation` is the ticks of the commit or snapshot that
/// wrote it.
pub(crate) fn layout_segment(blob: &RoutingKey, generation: u64, segment: u32) -> Bytes {
    join(blob, &[&generation.to_be_bytes(), &segment.to_be_bytes()])
}

/// The key of a snapshot of a blob.
pub(in crate::index) fn snapshot(blob: &RoutingKey, taken: Timestamp) -> Bytes {
    join(blob, &[&taken.ticks().to_be_bytes()])
}

/// The time of a version, from the key of its row.
pub(super) fn parse_version_time(row: &Bytes, blob: &RoutingKey) -> Result<Timestamp, Error> {
    match parse_version(row, blob)? {
        VersionKey::Version(committed) => Ok(committed),
        VersionKey::Snapshot(_) | VersionKey::Deleted(_) | VersionKey::Null => {
            Err(corrupt(Family::Versions, row, "not a version"))
        }
    }
}

/// The position in a list behind the version of this time, where versions are listed by time. It is
/// the key of no row.
pub(super) fn version_up(blob: &RoutingKey, time: Timestamp) -> Bytes {
    join(blob, &[&[UP_BEGIN], &time.ticks().to_be_bytes()])
}

/// The time of such a position; `None` for another one.
pub(super) fn version_up_of(position: &[u8], blob: &RoutingKey) -> Option<Timestamp> {
    let suffix = position.strip_prefix(blob.as_bytes().as_ref())?;
    let ticks = suffix.strip_prefix(&[UP_BEGIN])?.try_into().ok()?;
    Some(Timestamp::from_ticks(u64::from_be_bytes(ticks)))
}

/// The first position of the versions of a blob, after its snapshots.
pub(super) fn versions_start(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[VERSIONS_START]])
}

/// The key of a version: a former current blob, a delete marker, or a blob that can be restored.
/// Versions sort newest first, after the snapshots. `committed` is the time of its commit.
pub(in crate::index) fn version(blob: &RoutingKey, committed: Timestamp) -> Bytes {
    join(blob, &[&(!committed.ticks()).to_be_bytes()])
}

/// The time of the version that a position among the versions of a blob has passed; `None` if the
/// position is before them.
pub(super) fn version_passed(position: &Bytes, blob: &RoutingKey) -> Option<Timestamp> {
    let (first, _) = position.get(blob.as_bytes().len()..)?.split_first_chunk::<8>()?;
    let [kind, ..] = first;
    (*kind >= VERSIONS_START).then(|| RoutingKey::passed_version(position)).flatten()
}

/// The key of the row that names the null version.
pub(in crate::index) fn null_version(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[NULL_VERSION]])
}

/// The state of a row before it was softly deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeletedState {
    /// A snapshot, or a blob that was overwritten.
    Snapshot,
    /// The current blob.
    Blob,
    /// A version that was not current.
    Version,
}

impl DeletedState {
    /// All of them, in the order of their keys.
    pub(super) const ALL: [Self; 3] = [Self::Snapshot, Self::Blob, Self::Version];

    const fn byte(self) -> u8 {
        match self {
            Self::Snapshot => DELETED_SNAPSHOT,
            Self::Blob => DELETED_BLOB,
            Self::Version => DELETED_VERSION,
        }
    }
}

/// Which softly deleted row of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeletedKey {
    /// Its state before the deletion.
    pub(crate) state: DeletedState,
    /// The time of the snapshot or of the version; else the time at which the blob was replaced or
    /// deleted.
    pub(crate) time: Timestamp,
}

/// The key of a softly deleted row.
pub(crate) fn deleted(blob: &RoutingKey, key: DeletedKey) -> Bytes {
    join(blob, &[&[key.state.byte()], &key.time.ticks().to_be_bytes()])
}

/// The range of the keys of the softly deleted rows of a blob that were of one state.
pub(super) fn deleted_of_state(blob: &RoutingKey, state: DeletedState) -> (Bytes, Bytes) {
    let byte = state.byte();
    (join(blob, &[&[byte]]), join(blob, &[&[byte.saturating_add(1)]]))
}

/// The first position of the softly deleted rows of a blob.
pub(super) fn deleted_start(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[DELETED_SNAPSHOT]])
}

/// The first position after the softly deleted rows of a blob, where its snapshots begin.
pub(super) fn deleted_end(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[AFTER_DELETED]])
}

fn parse_deleted(suffix: &[u8]) -> Option<DeletedKey> {
    let (&kind, ticks) = suffix.split_first()?;
    let time = Timestamp::from_ticks(u64::from_be_bytes(ticks.try_into().ok()?));
    let state = DeletedState::ALL.into_iter().find(|state| state.byte() == kind)?;
    Some(DeletedKey { state, time })
}

/// The kinds of rows of a blob in the versions family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionKey {
    /// The snapshot of this time.
    Snapshot(Timestamp),
    /// The version with this time of commit.
    Version(Timestamp),
    /// A softly deleted row.
    Deleted(DeletedKey),
    /// The row that names the null version.
    Null,
}

/// Parses the key of a row of a blob in the versions family. Ticks of snapshots are below 2^63, so
/// a higher number is the inverted ticks of a version.
pub(crate) fn parse_version(row: &Bytes, blob: &RoutingKey) -> Result<VersionKey, Error> {
    let suffix = row.get(blob.as_bytes().len()..).unwrap_or_default();
    if suffix == [NULL_VERSION] {
        return Ok(VersionKey::Null);
    }
    if let Some(key) = parse_deleted(suffix) {
        return Ok(VersionKey::Deleted(key));
    }
    let Ok(ticks) = suffix.try_into().map(u64::from_be_bytes) else {
        return Err(corrupt(Family::Versions, row, "bad key"));
    };
    Ok(if ticks >> 63 == 0 {
        VersionKey::Snapshot(Timestamp::from_ticks(ticks))
    } else {
        VersionKey::Version(Timestamp::from_ticks(!ticks))
    })
}

/// The key of a setting of a container, by its number.
pub(in crate::index) fn setting(of: &RoutingKey, number: u8) -> Bytes {
    join(of, &[&[SETTING, number]])
}

/// The range of the keys of all settings of a container: its start, and its end, exclusive.
pub(super) fn settings(of: &RoutingKey) -> (Bytes, Bytes) {
    (join(of, &[&[SETTING]]), join(of, &[&[SETTING + 1]]))
}

/// The key of a setting beside the row of a container, also of a deleted one.
pub(super) fn setting_at(of: &[u8], number: u8) -> Bytes {
    [of, &[SETTING, number]].concat().into()
}

/// The key of a container that was softly deleted at this time.
pub(in crate::index) fn deleted_container(of: &RoutingKey, since: Timestamp) -> Bytes {
    join(of, &[&since.ticks().to_be_bytes()])
}

/// The time of the deletion, from the key of such a row; `None` if it is another row.
pub(crate) fn parse_deleted_container(row: &[u8], of: &RoutingKey) -> Option<Timestamp> {
    let ticks = row.get(of.as_bytes().len()..)?.try_into().ok()?;
    Some(Timestamp::from_ticks(u64::from_be_bytes(ticks)))
}

/// The range of the keys of the settings of a container that was softly deleted, from the key of
/// its row.
pub(super) fn settings_of_deleted(row: &Bytes) -> (Bytes, Bytes) {
    ([row.as_ref(), &[SETTING]].concat().into(), [row.as_ref(), &[SETTING + 1]].concat().into())
}

/// The number of the setting in a row of a container that was softly deleted; `None` if the row is
/// another one.
pub(crate) fn parse_setting_of_deleted(row: &[u8], of: &RoutingKey) -> Option<u8> {
    match row.get(of.as_bytes().len() + 8..)? {
        [SETTING, number] => Some(*number),
        _ => None,
    }
}

/// The number of the setting in a row of a container in the versions family; `None` if the row is
/// not a setting.
pub(crate) fn parse_setting(row: &[u8], of: &RoutingKey) -> Option<u8> {
    match row.get(of.as_bytes().len()..)? {
        [SETTING, number] => Some(*number),
        _ => None,
    }
}

/// The key of the span that ends at `end` in a layer of a page blob. Keys have the ends of spans,
/// so that the first span that overlaps a range is the first row after the start of the range.
pub(crate) fn span(blob: &RoutingKey, layer: u64, end: u64) -> Bytes {
    join(blob, &[&layer.to_be_bytes(), &end.to_be_bytes()])
}

/// The suffix of a span's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanKey {
    /// The layer of the span.
    pub(crate) layer: u64,
    /// The end of the span in the blob.
    pub(crate) end: u64,
}

/// Parses the key of a span in the layout family; `None` for a segment.
pub(crate) fn parse_span(row: &[u8], blob: &RoutingKey) -> Option<SpanKey> {
    let suffix: [u8; 16] = row.get(blob.as_bytes().len()..)?.try_into().ok()?;
    let (layer, end) = suffix.split_at(8);
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    Some(SpanKey { layer: number(layer)?, end: number(end)? })
}

/// The key of a dead layer: one that no blob, snapshot or version names.
pub(crate) fn dead_layer(blob: &RoutingKey, layer: u64) -> Bytes {
    join(blob, &[&layer.to_be_bytes()])
}

/// The dead layer of a row of the garbage family; `None` if the row has locations.
pub(crate) fn parse_dead_layer(row: &[u8], blob: &RoutingKey) -> Option<u64> {
    let suffix: [u8; 8] = row.get(blob.as_bytes().len()..)?.try_into().ok()?;
    Some(u64::from_be_bytes(suffix))
}

/// The key of the `n`-th garbage row of a change made at `now`.
pub(in crate::index) fn garbage(blob: &RoutingKey, now: Timestamp, n: u32) -> Bytes {
    join(blob, &[&now.ticks().to_be_bytes(), &n.to_be_bytes()])
}

/// The key of the work row of a change of a blob's tags made at `now`.
pub(in crate::index) fn tag_work(blob: &RoutingKey, now: Timestamp) -> Bytes {
    join(blob, &[&[WORK_TAGS], &now.ticks().to_be_bytes()])
}

/// The time of the change of tags of a row of the work family; `None` if the row is another kind of
/// work.
pub(crate) fn parse_tag_work(row: &[u8], blob: &RoutingKey) -> Option<Timestamp> {
    match row.get(blob.as_bytes().len()..)?.split_first()? {
        (&WORK_TAGS, ticks) => {
            Some(Timestamp::from_ticks(u64::from_be_bytes(ticks.try_into().ok()?)))
        }
        _ => None,
    }
}

/// The key of the work row of the pending copy into a blob.
pub(in crate::index) fn copy_work(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[WORK_COPY]])
}

/// Whether a row of the work family is that of a pending copy.
pub(crate) fn is_copy_work(row: &[u8], blob: &RoutingKey) -> bool {
    row.get(blob.as_bytes().len()..) == Some(&[WORK_COPY])
}

/// The key of the work row about the soft-deleted rows of a blob.
pub(crate) fn deleted_work(blob: &RoutingKey) -> Bytes {
    join(blob, &[&[WORK_DELETED]])
}

/// Whether a row of the work family is about the soft-deleted rows of a blob.
pub(crate) fn is_deleted_work(row: &[u8], blob: &RoutingKey) -> bool {
    row.get(blob.as_bytes().len()..) == Some(&[WORK_DELETED])
}

/// The deleted container of a row of the garbage family; `None` if it is another kind of row.
pub(crate) fn parse_purge(row: &[u8]) -> Option<(AccountId, ContainerId)> {
    if row.len() != PURGE_KEY_LEN || row.get(8..18)? != [0u8; 10] {
        return None;
    }
    let account = u64::from_be_bytes(row.get(..8)?.try_into().ok()?);
    let container = u64::from_be_bytes(row.get(18..)?.try_into().ok()?);
    Some((AccountId::new(account), ContainerId::new(container)))
}

/// The routing key of a row.
pub(crate) fn routing_key(family: Family, row: &Bytes) -> Result<RoutingKey, Error> {
    RoutingKey::of_row(row).ok_or_else(|| corrupt(family, row, "no routing key"))
}

/// The first position after all rows of a blob.
pub(super) fn after(blob: &RoutingKey) -> Bytes {
    RoutingKey::after_prefix(blob.as_bytes()).unwrap_or_default()
}

/// The lowest position above `key`.
pub(super) fn just_after(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

/// The error of a malformed row.
pub(crate) fn corrupt(family: Family, key: &[u8], what: &str) -> Error {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Error::damaged_rows(format!("{family:?} row {key}: {what}"))
}

fn join(blob: &RoutingKey, suffix: &[&[u8]]) -> Bytes {
    let mut key = blob.as_bytes().to_vec();
    for part in suffix {
        key.extend_from_slice(part);
    }
    key.into()
}
