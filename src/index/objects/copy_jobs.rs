//! Pending copies. A work row beside the destination exists from the commit that begins a copy to
//! the commit that ends it (ADR 0017).

use bytes::Bytes;
use uuid::Uuid;

use crate::index::api::CopiedContent;
use crate::index::api::CopyEnd;
use crate::index::api::CopyJobPage;
use crate::index::api::EndCopy;
use crate::index::api::Error;
use crate::index::api::LeaseCopy;
use crate::index::api::NewContent;
use crate::index::api::PendingCopy;
use crate::index::api::Refused;
use crate::index::api::ResealCopy;
use crate::index::api::WriteReply;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::copy;
use crate::index::objects::copy::Copied;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::lock;
use crate::index::objects::values;
use crate::index::record::CopyJob;
use crate::index::record::CopyLease;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// Decodes the value of a work row.
pub(in crate::index) fn decode(row: &Row) -> Result<CopyJob, Error> {
    values::decode_record(Family::Work, &row.key, &row.value)
}

/// Returns pending copies from a position on, and where to continue.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    from: &Bytes,
    limit: usize,
) -> Result<CopyJobPage, Error> {
    let end = range.high().map(|high| high.as_bytes().clone());
    let mut cursor = Cursor::new(view, Family::Work, from.clone(), end.clone()).pausing();
    let mut jobs = Vec::new();
    while let Some(row) = cursor.take().await? {
        let blob = keys::routing_key(Family::Work, &row.key)?;
        if !keys::is_copy_work(&row.key, &blob) {
            continue;
        }
        if jobs.len() >= limit {
            return Ok(CopyJobPage { jobs, next: Some(row.key) });
        }
        jobs.push(PendingCopy { blob, job: decode(&row)? });
    }
    Ok(CopyJobPage { jobs, next: cursor.paused().cloned().or(end) })
}

/// Replaces the sealed source of a pending copy, unless it was replaced meanwhile or the copy has
/// ended.
pub(super) async fn reseal(
    eval: &mut Evaluation<'_>,
    again: &ResealCopy,
) -> Result<WriteReply, Error> {
    let key = keys::copy_work(&again.blob);
    if let Some(value) = eval.view.get(Family::Work, &key).await? {
        let mut job: CopyJob = values::decode_record(Family::Work, &key, &value)?;
        if job.source == again.from {
            job.source = again.to.clone();
            eval.out.put(Family::Work, key, values::encode_record(&job));
        }
    }
    Ok(WriteReply::Done)
}

/// The destination of a copy.
async fn destination(eval: &Evaluation<'_>, key: &RoutingKey) -> Result<Blob, Error> {
    blob_row::current(eval, key).await?.ok_or_else(|| Refused::BlobNotFound.into())
}

/// The record of the copy with this id, if it is pending.
fn pending(copy: Option<Box<CopyRecord>>, id: Uuid) -> Result<Box<CopyRecord>, Refused> {
    match copy.filter(|copy| copy.status == CopyStatus::Pending) {
        None => Err(Refused::NoPendingCopy),
        Some(copy) if copy.id != id => Err(Refused::OtherCopy),
        Some(copy) => Ok(copy),
    }
}

/// Gives a lease of a pending copy, or renews it. Progress is no change of the blob: its ETag
/// stays.
pub(super) async fn lease(
    eval: &mut Evaluation<'_>,
    wanted: &LeaseCopy,
) -> Result<WriteReply, Error> {
    let mut blob = destination(eval, &wanted.blob).await?;
    let mut copy = pending(blob.record.copy.take(), wanted.id)?;
    let key = keys::copy_work(&wanted.blob);
    let value = eval.view.get(Family::Work, &key).await?.ok_or(Refused::NoPendingCopy)?;
    let mut job: CopyJob = values::decode_record(Family::Work, &key, &value)?;
    let is_of_another = |lease: &CopyLease| lease.id != wanted.lease && eval.now < lease.until;
    if job.lease.as_ref().is_some_and(is_of_another) {
        return Err(Refused::CopyPending.into());
    }
    let until = eval.now.plus(wanted.duration);
    job.lease = Some(CopyLease { id: wanted.lease, until });
    eval.out.put(Family::Work, key, values::encode_record(&job));
    copy.copied = wanted.copied.min(copy.total);
    blob.record.copy = Some(copy);
    blob.store(eval, &wanted.blob);
    Ok(WriteReply::Done)
}

/// Ends a pending copy: its bytes become the content of the blob, or the blob stays empty.
pub(super) async fn end(eval: &mut Evaluation<'_>, end: &EndCopy) -> Result<WriteReply, Error> {
    let key = &end.blob;
    let blob = destination(eval, key).await?;
    let mut record = blob.record.clone();
    if let CopyEnd::Aborted(lease) = end.end {
        record.lease = guard::lease_of_write(lease, record.lease, eval.now)?;
        // The end of a copy is a request of its own, but it completes the write that began the
        // copy.
        lock::may_change(&record, eval.now)?;
    }
    let mut copied = pending(record.copy.take(), end.id)?;
    let nothing = CopiedContent::Whole(NewContent::Inline(Bytes::new()));
    let (content, crc64) = match &end.end {
        CopyEnd::Success { content, crc64 } => {
            (copied.status, copied.copied) = (CopyStatus::Success, copied.total);
            (content, *crc64)
        }
        CopyEnd::Failed(why) => {
            (copied.status, copied.description) = (CopyStatus::Failed, Some(why.clone()));
            (&nothing, Crc64::EMPTY)
        }
        CopyEnd::Aborted(_) => {
            copied.status = CopyStatus::Aborted;
            (&nothing, Crc64::EMPTY)
        }
    };
    copied.completed = Some(eval.now);
    let before = blob.content(key)?.layout;
    let dropped = layout::owned(eval, key, &before).await?;
    layout::remove_rows(eval, key, &before);
    let laid = copy::lay(eval, key, Copied { kind: record.kind, content, crc64 }).await?;
    garbage::write(eval, key, &dropped, &laid.kept);
    record.copy = Some(copied);
    (record.kind, record.len, record.crc64) = (laid.kind, laid.len, crc64);
    (record.last_modified, record.etag) = (eval.now, Etag::from_commit(eval.now));
    eval.out.delete(Family::Work, keys::copy_work(key));
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &laid.content));
    Ok(blob_row::written(eval.now))
}
