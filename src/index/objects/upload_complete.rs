//! Completes uploads: one commit makes the blob of the parts and ends the upload. Its cost is
//! linear in the parts that are staged.

use std::cmp::Ordering;

use crate::index::api::CompleteUpload;
use crate::index::api::Error;
use crate::index::api::NamedPart;
use crate::index::api::UploadCompleted;
use crate::index::api::UploadRefusal;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::chain;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::commit;
use crate::index::objects::commit::Total;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::upload;
use crate::index::objects::upload::Parts;
use crate::index::objects::upload_checksum;
use crate::index::objects::values;
use crate::index::objects::values::Entry;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::CompletedRecord;
use crate::index::record::UploadRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::ChecksumAlgorithm;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::TierState;
use crate::types::UploadId;
use crate::types::tag_of_parts;

/// Completes an upload.
pub(super) async fn complete(
    eval: &mut Evaluation<'_>,
    complete: &CompleteUpload,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&complete.key);
    check_order(&complete.parts)?;
    let Some(upload) = upload::load(eval.view, &key, complete.upload).await? else {
        return again(eval.view, &key, complete).await;
    };
    let Taken { entries, mut dropped } = take(eval, &key, complete).await?;
    let total = check(&upload, complete, &entries, &key)?;
    let checksum = upload_checksum::check(&upload, complete, &entries, total.crc64)?;
    // The row of each blob has a CRC-64/NVME.
    let is_in_row = |whole: &&ContentChecksum| whole.algorithm == ChecksumAlgorithm::Crc64Nvme;
    let old = blob_row::current(eval, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&complete.guard, before, eval.now)?;
    guard::replaceable(&complete.guard, before, eval.now)?;
    let fields = BlobFields {
        content_tag: Some(tag_of_parts(complete.parts.iter().map(|part| &part.tag))),
        checksums: checksum.iter().filter(|whole| !is_in_row(whole)).cloned().collect(),
        ..upload.blob.fields.as_deref().cloned().unwrap_or_default()
    };
    let mut record = record(eval, &upload, &Replaced { before, lease }, &fields, &total);
    tags::changed(eval, &key, &blob_row::tags_of(old.as_ref()), &record.tags);
    dropped.extend(staged::discard(eval, &key).await?);
    let of = InTheWay::of(old.as_ref());
    let way = chain::make_way(eval, &key, &complete.guard, of).await?;
    way.finish(&mut record, &complete.guard, eval.now)?;
    dropped.extend(way.dropped);
    garbage::write(eval, &key, &dropped, entries.iter().flat_map(|e| e.content.locations()));
    let count = entries.len();
    let content = layout::build(eval, &key, entries);
    commit::check_layout(&content.layout, count, total.len)
        .map_err(|violation| eval.view.violated(violation))?;
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    eval.out.delete(Family::Staged, keys::upload(&key, complete.upload));
    let checksums = checksum.into_iter().collect();
    let fields = BlobFields { checksums, version: record.version(), ..fields };
    Ok(remember(eval, &key, complete.upload, fields))
}

/// Refuses a list that is empty or not in the order of the numbers of the parts.
fn check_order(parts: &[NamedPart]) -> Result<(), UploadRefusal> {
    let ascends = parts.is_sorted_by(|a, b| a.number < b.number);
    if parts.is_empty() || !ascends { Err(UploadRefusal::Order) } else { Ok(()) }
}

/// The blocks that the list takes, and the rest of the upload.
struct Taken {
    entries: Vec<Entry>,
    /// Locations of other parts.
    dropped: Vec<Location>,
}

/// Finds each named part, and removes the rows of all parts.
async fn take(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    complete: &CompleteUpload,
) -> Result<Taken, Error> {
    let mut named = complete.parts.iter().peekable();
    let mut taken =
        Taken { entries: Vec::with_capacity(complete.parts.len()), dropped: Vec::new() };
    let mut parts = Parts::new(eval.view, key, complete.upload, 0).expecting(complete.parts.len());
    while let Some((number, part)) = parts.next().await? {
        eval.out.delete(Family::Staged, keys::part(key, complete.upload, number.get()));
        let order = named.peek().map(|next| next.number.cmp(&number));
        match order {
            Some(Ordering::Less) => break,
            Some(Ordering::Equal) => {
                let Some(name) = named.next() else { break };
                taken.entries.push(entry(name, part)?);
            }
            Some(Ordering::Greater) | None => {
                taken.dropped.extend_from_slice(part.content.owned());
                eval.out.shared_dropped += part.content.shared_len();
            }
        }
    }
    match named.next() {
        Some(missing) => Err(UploadRefusal::UnknownPart(missing.number.get()).into()),
        None => Ok(taken),
    }
}

/// The block that a part becomes, if it is the part that the list names.
fn entry(name: &NamedPart, part: StagedBlock) -> Result<Entry, UploadRefusal> {
    let is_meant = upload::tag_of(&part) == name.tag
        && name.checksum.as_ref().is_none_or(|named| upload_checksum::may_have(&part, named));
    if !is_meant {
        return Err(UploadRefusal::UnknownPart(name.number.get()));
    }
    let StagedBlock { len, crc64, fields, content, time: _ } = part;
    Ok(Entry { id: name.number.block_id(), len, crc64, content, fields })
}

/// Checks the lengths of the parts, and adds up their lengths and checksums.
fn check(
    upload: &UploadRecord,
    complete: &CompleteUpload,
    entries: &[Entry],
    key: &RoutingKey,
) -> Result<Total, Error> {
    let but_last = entries.len().saturating_sub(1);
    let small = entries.iter().take(but_last).find(|entry| entry.len < complete.part_len_min);
    if let Some((entry, name)) =
        small.zip(small.and_then(|small| {
            complete.parts.iter().find(|name| name.number.block_id() == small.id)
        }))
    {
        let number = name.number.get();
        return Err(UploadRefusal::SmallPart { number, len: entry.len }.into());
    }
    let total = commit::sum(entries, key)?;
    if complete.len.is_some_and(|len| len != total.len) {
        return Err(UploadRefusal::Length { len: total.len }.into());
    }
    let coverage = upload.checksum().map(|checksum| checksum.coverage);
    if complete.coverage.is_some_and(|wanted| coverage.is_some_and(|kept| kept != wanted)) {
        return Err(UploadRefusal::ChecksumKind.into());
    }
    Ok(total)
}

/// The blob that the new one replaces.
struct Replaced<'a> {
    before: Option<&'a BlobRecord>,
    /// The lease that stays.
    lease: Option<Lease>,
}

/// The record of the blob that the upload makes.
fn record(
    eval: &Evaluation<'_>,
    upload: &UploadRecord,
    replaced: &Replaced<'_>,
    fields: &BlobFields,
    total: &Total,
) -> BlobRecord {
    let BlobRecord { properties, metadata, tags, tier, encryption, .. } = &upload.blob;
    BlobRecord {
        properties: properties.clone(),
        metadata: metadata.clone(),
        tags: tags.clone(),
        tier: tier.as_ref().map(|tier| TierState::new(tier.tier, eval.now)),
        encryption: encryption.clone(),
        lease: replaced.lease,
        fields: Some(Box::new(fields.clone())),
        ..BlobRecord::after(replaced.before, eval.now, total.len, total.crc64)
    }
}

/// Writes the row from which a second completion gets the answer of the first.
fn remember(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    id: UploadId,
    fields: BlobFields,
) -> WriteReply {
    let BlobFields { content_tag, checksums, version, .. } = fields;
    let kept = BlobFields { content_tag, checksums, version, ..BlobFields::default() };
    let record = CompletedRecord { completed: eval.now, fields: Some(Box::new(kept)) };
    let row = keys::completed_upload(key, id);
    eval.out.put(Family::Staged, row, values::encode_record(&record));
    answer(record)
}

/// The answer to the completion of an upload.
fn answer(record: CompletedRecord) -> WriteReply {
    let CompletedRecord { completed, fields } = record;
    let BlobFields { content_tag, checksums, version, .. } =
        fields.map(|fields| *fields).unwrap_or_default();
    WriteReply::UploadCompleted(Box::new(UploadCompleted {
        written: Written::at(completed, version),
        tag: content_tag
            .and_then(|tag| tag.etag(None))
            .unwrap_or_else(|| ContentEtag::of_commit(Etag::from_commit(completed), 0, 1)),
        checksums,
    }))
}

/// Answers a second completion with the same parts.
async fn again(
    view: &dyn Rows,
    key: &RoutingKey,
    complete: &CompleteUpload,
) -> Result<WriteReply, Error> {
    let row = keys::completed_upload(key, complete.upload);
    let value = view.get(Family::Staged, &row).await?.ok_or(UploadRefusal::NotFound)?;
    let record: CompletedRecord = values::decode_record(Family::Staged, &row, &value)?;
    let tag = record.fields.as_ref().and_then(|fields| fields.content_tag);
    if tag != Some(tag_of_parts(complete.parts.iter().map(|part| &part.tag))) {
        return Err(UploadRefusal::NotFound.into());
    }
    Ok(answer(record))
}
