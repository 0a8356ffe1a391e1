//! Uploads in parts: their rows lie beside the blob, which they do not change before they are
//! completed (ADR 0036). `upload_complete.rs` completes them, `upload_list.rs` lists them.

use crate::index::api::AbortUpload;
use crate::index::api::Error;
use crate::index::api::ListParts;
use crate::index::api::NewBlobFields;
use crate::index::api::PartPage;
use crate::index::api::PartView;
use crate::index::api::StagePart;
use crate::index::api::StartUpload;
use crate::index::api::UploadRefusal;
use crate::index::api::WriteReply;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::lock;
use crate::index::objects::new_fields;
use crate::index::objects::part_fields::PartFields;
use crate::index::objects::upload_checksum;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobRecord;
use crate::index::record::CompletedRecord;
use crate::index::record::UnknownFields;
use crate::index::record::UploadFields;
use crate::index::record::UploadRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::ContentEtag;
use crate::types::Crc64;
use crate::types::Location;
use crate::types::PartNumber;
use crate::types::RoutingKey;
use crate::types::TierState;
use crate::types::Timestamp;
use crate::types::UploadChecksum;
use crate::types::UploadId;
use crate::types::part_tag;

/// Starts an upload.
pub(super) fn start(eval: &mut Evaluation<'_>, start: &StartUpload) -> Result<WriteReply, Error> {
    lock::check_future(start.lock.retention, eval.now)?;
    let object = NewBlobFields { object: start.object.clone(), ..NewBlobFields::default() };
    let mut blob = BlobRecord {
        properties: start.properties.clone(),
        metadata: start.metadata.clone(),
        tags: start.tags.clone(),
        tier: start.tier.map(|tier| TierState::new(tier, eval.now)),
        fields: new_fields::of(BlobKind::Block, &object),
        ..BlobRecord::new(eval.now, eval.now, 0, Crc64::EMPTY)
    };
    blob.put_under(start.encryption.applied());
    blob.set_retention(start.lock.retention);
    blob.set_legal_hold(start.lock.legal_hold);
    let fields = UploadFields {
        checksum: start.checksum,
        initiator: start.initiator.clone(),
        unknown: UnknownFields::default(),
    };
    let fields = (fields != UploadFields::default()).then(|| Box::new(fields));
    let row = keys::upload(&RoutingKey::blob(&start.key), start.id);
    eval.out.put(Family::Staged, row, values::encode_record(&UploadRecord { blob, fields }));
    Ok(WriteReply::Done)
}

/// Reads an upload that has not ended.
pub(super) async fn load(
    view: &dyn Rows,
    blob: &RoutingKey,
    id: UploadId,
) -> Result<Option<UploadRecord>, Error> {
    let row = keys::upload(blob, id);
    match view.get(Family::Staged, &row).await? {
        Some(value) => values::decode_record(Family::Staged, &row, &value).map(Some),
        None => Ok(None),
    }
}

/// Stages a part.
pub(super) async fn stage(
    eval: &mut Evaluation<'_>,
    stage: &StagePart,
) -> Result<WriteReply, Error> {
    let blob = RoutingKey::blob(&stage.key);
    let upload = load(eval.view, &blob, stage.upload).await?.ok_or(UploadRefusal::NotFound)?;
    encryption::check_part(&stage.encryption, upload.blob.under().as_ref())?;
    let row = keys::part(&blob, stage.upload, stage.number.get());
    let content = Content::from(&stage.content);
    if let Some(value) = eval.view.get(Family::Staged, &row).await? {
        let old: StagedBlock = values::decode_record(Family::Staged, &row, &value)?;
        eval.out.shared_dropped += old.content.shared_len();
        garbage::write(eval, &blob, old.content.owned(), content.locations());
    }
    let fields =
        PartFields { checksums: stage.checksums.clone(), unknown: UnknownFields::default() };
    let part = StagedBlock {
        len: content.len(),
        crc64: stage.crc64,
        time: eval.now,
        fields: (fields != PartFields::default()).then(|| Box::new(fields)),
        content,
    };
    eval.out.put(Family::Staged, row, values::encode_record(&part));
    Ok(WriteReply::PartStaged(Box::new(part_view(stage.number, &part, upload.checksum()))))
}

/// The tag of a staged part.
pub(super) fn tag_of(part: &StagedBlock) -> ContentEtag {
    let checksums = part.fields.as_ref().map_or(&[][..], |fields| &fields.checksums);
    match part.content.nonce() {
        Some(nonce) => part_tag(checksums, &nonce.bytes),
        None => {
            let otherwise = [part.crc64.to_le_bytes(), part.len.to_le_bytes()];
            part_tag(checksums, otherwise.as_flattened())
        }
    }
}

fn part_view(number: PartNumber, part: &StagedBlock, kept: Option<UploadChecksum>) -> PartView {
    let checksum = kept.and_then(|kept| upload_checksum::of_part(part, kept.algorithm));
    PartView { number, len: part.len, staged: part.time, tag: tag_of(part), checksum }
}

/// A walk over the parts of an upload in the order of their numbers.
pub(super) struct Parts<'a> {
    blob: &'a RoutingKey,
    cursor: Cursor<'a>,
}

impl<'a> Parts<'a> {
    /// The parts with higher numbers than `after`.
    pub(super) fn new(view: &'a dyn Rows, blob: &'a RoutingKey, id: UploadId, after: u32) -> Self {
        let start = keys::part(blob, id, after.saturating_add(1));
        let end = keys::after_upload(blob, id);
        Self { blob, cursor: Cursor::new(view, Family::Staged, start, Some(end)) }
    }

    /// Makes the first step of the walk read about `parts` rows.
    pub(super) fn expecting(mut self, parts: usize) -> Self {
        self.cursor = self.cursor.expecting(parts);
        self
    }

    /// The next part and its number.
    pub(super) async fn next(&mut self) -> Result<Option<(PartNumber, StagedBlock)>, Error> {
        let Some(row) = self.cursor.take().await? else {
            return Ok(None);
        };
        let number = match keys::parse_staged(&row.key, self.blob)? {
            StagedKey::Part(_, number) => PartNumber::new(number),
            StagedKey::Summary
            | StagedKey::Block(_)
            | StagedKey::Upload(_)
            | StagedKey::Completed(_) => None,
        };
        let number = number.ok_or_else(|| keys::corrupt(Family::Staged, &row.key, "not a part"))?;
        Ok(Some((number, values::decode_record(Family::Staged, &row.key, &row.value)?)))
    }
}

/// An upload and a page of its parts.
pub(super) async fn parts(view: &dyn Rows, list: &ListParts) -> Result<PartPage, Error> {
    let blob = RoutingKey::blob(&list.key);
    let record = load(view, &blob, list.upload).await?.ok_or(UploadRefusal::NotFound)?;
    let (mut found, mut is_truncated) = (Vec::new(), false);
    if list.limit > 0 {
        let mut parts = Parts::new(view, &blob, list.upload, list.after)
            .expecting(list.limit.saturating_add(1));
        while let Some((number, part)) = parts.next().await? {
            if found.len() >= list.limit {
                is_truncated = true;
                break;
            }
            found.push(part_view(number, &part, record.checksum()));
        }
    }
    Ok(PartPage { record, parts: found, is_truncated })
}

/// Aborts an upload.
pub(super) async fn abort(
    eval: &mut Evaluation<'_>,
    abort: &AbortUpload,
) -> Result<WriteReply, Error> {
    let blob = RoutingKey::blob(&abort.key);
    let row = keys::upload(&blob, abort.upload);
    if eval.view.get(Family::Staged, &row).await?.is_none() {
        return Err(UploadRefusal::NotFound.into());
    }
    let dropped = remove(eval, &blob, abort.upload).await?;
    garbage::write(eval, &blob, &dropped, &[]);
    Ok(WriteReply::Done)
}

/// Removes the rows of an upload, and returns the locations that they own.
async fn remove(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    id: UploadId,
) -> Result<Vec<Location>, Error> {
    let mut dropped = Vec::new();
    let mut parts = Parts::new(eval.view, blob, id, 0);
    while let Some((number, part)) = parts.next().await? {
        dropped.extend_from_slice(part.content.owned());
        eval.out.shared_dropped += part.content.shared_len();
        eval.out.delete(Family::Staged, keys::part(blob, id, number.get()));
    }
    eval.out.delete(Family::Staged, keys::upload(blob, id));
    Ok(dropped)
}

/// The rows that [`remove_all`] removed.
pub(super) struct Removed {
    /// The locations that the rows own.
    pub(super) dropped: Vec<Location>,
    /// Whether uploads are left.
    pub(super) has_more: bool,
}

/// Removes uploads of a blob, also completed ones. It stops after an upload when the evaluation has
/// `changes_max` changes.
pub(super) async fn remove_all(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    changes_max: usize,
) -> Result<Removed, Error> {
    let mut dropped = Vec::new();
    let (start, end) = (keys::staged_blocks_end(blob), keys::after(blob));
    let mut cursor = Cursor::new(eval.view, Family::Staged, start, Some(end));
    while let Some(row) = cursor.take().await? {
        if eval.out.changes.len() >= changes_max {
            return Ok(Removed { dropped, has_more: true });
        }
        match keys::parse_staged(&row.key, blob)? {
            StagedKey::Upload(id) => {
                dropped.extend(remove(eval, blob, id).await?);
                cursor.seek(&keys::after_upload(blob, id));
            }
            StagedKey::Completed(_) => eval.out.delete(Family::Staged, row.key),
            // A part whose upload is missing. Its bytes must be freed.
            StagedKey::Part(id, _) => {
                dropped.extend(remove(eval, blob, id).await?);
                cursor.seek(&keys::after_upload(blob, id));
            }
            StagedKey::Summary | StagedKey::Block(_) => {
                return Err(keys::corrupt(Family::Staged, &row.key, "not an upload"));
            }
        }
    }
    Ok(Removed { dropped, has_more: false })
}

/// Rows of completed uploads that one write reads, and at most deletes.
const FORGOTTEN_MAX: usize = 2_000;

/// A walk over the completed uploads of a blob.
fn completed<'a>(view: &'a dyn Rows, blob: &RoutingKey) -> Cursor<'a> {
    let (start, end) = (keys::completed_uploads_start(blob), keys::after(blob));
    Cursor::new(view, Family::Staged, start, Some(end))
}

/// The completion time of the blob's first completed upload, in the order of their start. The
/// others wait for it, so each may be remembered for longer than necessary.
pub(super) async fn first_completed(
    view: &dyn Rows,
    blob: &RoutingKey,
) -> Result<Option<Timestamp>, Error> {
    let Some(row) = completed(view, blob).take().await? else { return Ok(None) };
    let record: CompletedRecord = values::decode_record(Family::Staged, &row.key, &row.value)?;
    Ok(Some(record.completed))
}

/// Removes the rows of uploads that were completed before a time, at most [`FORGOTTEN_MAX`]; the
/// next pass removes more.
pub(super) async fn forget_completed(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    before: Timestamp,
) -> Result<(), Error> {
    let mut cursor = completed(eval.view, blob);
    for _ in 0..FORGOTTEN_MAX {
        let Some(row) = cursor.take().await? else { break };
        let record: CompletedRecord = values::decode_record(Family::Staged, &row.key, &row.value)?;
        if record.completed < before {
            eval.out.delete(Family::Staged, row.key);
        }
    }
    Ok(())
}
