//! Put Page, Get Page Ranges, length and sequence number.

use std::ops::Range;

use crate::frontend::accounts::Account;
use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::encrypt_md5;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ingest::Ingested;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::Stored;
use crate::index::Guard;
use crate::index::PageRanges;
use crate::index::PagesWritten;
use crate::index::ReadPages;
use crate::index::SequenceAction;
use crate::index::SequenceBounds;
use crate::index::UpdatePages;
use crate::index::WritePages;
use crate::index::WriteRequest;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::PageWrite;
use crate::protocol::model::operation::SequenceChange;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::PageItem;
use crate::types::BlobKey;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::Conditions;
use crate::types::Timestamp;

/// A Put Page.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) path: BlobPath,
    pub(crate) precondition: Precondition,
    pub(crate) sequence: operation::SequenceBounds,
    pub(crate) write: PageWrite,
    pub(crate) range: Range<u64>,
    pub(crate) upload: Upload,
}

/// Put Page: bytes, then the row.
pub(crate) async fn put(
    front: &FrontEnd,
    account: &Account,
    put: Put,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, account, put.path).await?;
    match put.write {
        PageWrite::Update => {
            let start = put.range.start;
            let encrypting = Encrypting::new(&front.env, put.precondition.encryption.key());
            let ingested =
                ingest::ingest_pages(&front.pool, body, &put.upload, start, encrypting).await?;
            put_stored(front, key, (put.precondition, put.sequence, put.range), ingested).await
        }
        PageWrite::Clear => {
            // There is no body, but what the client says of it is held against nothing.
            ingest::check_empty(&front.pool, body, &put.upload).await?;
            clear(front, key, (put.precondition, put.sequence, put.range)).await
        }
    }
}

/// Writes pages whose bytes are stored already.
pub(crate) async fn put_stored(
    front: &FrontEnd,
    key: BlobKey,
    (precondition, sequence, range): (Precondition, operation::SequenceBounds, Range<u64>),
    ingested: Ingested,
) -> Result<Reply, Refusal> {
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = WritePages {
        key,
        guard,
        sequence: bounds(sequence),
        range,
        content: Some(ingested.stored.content()),
    };
    let checksum = BodyChecksum::new(ingested.crc64, ingested.md5);
    let done = commit(front, write, Some(ingested.stored)).await?;
    Ok(with_encryption_header(written(done, Some(checksum)), &encryption))
}

async fn clear(
    front: &FrontEnd,
    key: BlobKey,
    (precondition, sequence, mut range): (Precondition, operation::SequenceBounds, Range<u64>),
) -> Result<Reply, Refusal> {
    let mut guard = lookup::guard(precondition);
    let mut sequence = bounds(sequence);
    loop {
        let write = WritePages {
            key: key.clone(),
            guard: guard.clone(),
            sequence,
            range: range.clone(),
            content: None,
        };
        let done = commit(front, write, None).await?;
        let Some(rest) = done.rest else {
            return Ok(with_encryption_header(written(done, None), &guard.encryption));
        };
        range.start = rest;
        guard = going_on(guard);
        sequence = SequenceBounds::default();
    }
}

/// Later steps of a long change: what was demanded held when it began.
fn going_on(guard: Guard) -> Guard {
    Guard { conditions: Conditions::default(), ..guard }
}

/// Set Blob Properties with a length or sequence number.
pub(crate) async fn set(
    front: &FrontEnd,
    account: &Account,
    (path, precondition): (BlobPath, Precondition),
    mut properties: Option<BlobProperties>,
    (len, sequence): (Option<u64>, Option<SequenceChange>),
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, account, path).await?;
    if let Some(properties) = &mut properties {
        encrypt_md5(&front.env, precondition.encryption.key(), properties);
    }
    let mut guard = lookup::guard(precondition);
    let sequence = sequence.map(|change| match change {
        SequenceChange::Max(number) => SequenceAction::Max(number),
        SequenceChange::Update(number) => SequenceAction::Update(number),
        SequenceChange::Increment => SequenceAction::Increment,
    });
    loop {
        let write = UpdatePages {
            key: key.clone(),
            guard: guard.clone(),
            properties: properties.clone(),
            len,
            sequence,
        };
        let done = commit(front, write, None).await?;
        if done.rest.is_none() {
            return Ok(Reply::PagePropertiesSet { change: change(done), sequence: done.sequence });
        }
        guard = going_on(guard);
    }
}

/// Get Page Ranges.
pub(crate) async fn ranges(
    front: &FrontEnd,
    account: &Account,
    (path, since, precondition): (BlobPath, Option<Timestamp>, Precondition),
    (range, marker): (Option<ByteRange>, Option<u64>),
    max_results: u32,
) -> Result<Reply, Refusal> {
    let snapshot = path.snapshot;
    let key = lookup::blob_key(front, account, path).await?;
    let limit = usize::try_from(max_results).unwrap_or(usize::MAX).max(1);
    let last = range.and_then(|range| range.within(u64::MAX)).map(|range| range.end - 1);
    let mut from = marker;
    let mut items: Vec<PageItem> = Vec::new();
    loop {
        let range = match from {
            Some(from) => ByteRange::new(from, last.map(|last| last.max(from))),
            None => range,
        };
        let guard = lookup::guard(precondition.clone());
        let (key, limit) = (key.clone(), limit - items.len());
        let read = ReadPages { key, snapshot, since, guard, range, limit };
        let found = front.router.ask(read).await;
        let found = found.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        let PageRanges { record, ranges, next } = found;
        for found in ranges {
            match items.last_mut() {
                Some(last)
                    if last.range.end == found.range.start && last.cleared == found.cleared =>
                {
                    last.range.end = found.range.end;
                }
                _ => items.push(PageItem { range: found.range, cleared: found.cleared }),
            }
        }
        if next.is_none() || items.len() >= limit {
            let change = Change { etag: record.etag, last_modified: record.last_modified };
            return Ok(Reply::PageRanges { change, len: record.len, items, next });
        }
        from = next;
    }
}

async fn commit<W: WriteRequest<Reply = PagesWritten>>(
    front: &FrontEnd,
    write: W,
    stored: Option<Stored>,
) -> Result<PagesWritten, Refusal> {
    let done = commit::commit(front, write, stored).await;
    done.map_err(|error| errors::from_index(&error, Subject::Blob))
}

fn written(done: PagesWritten, checksum: Option<BodyChecksum>) -> Reply {
    Reply::PagesPut { change: change(done), sequence: done.sequence, checksum }
}

fn change(done: PagesWritten) -> Change {
    Change { etag: done.written.etag, last_modified: done.written.last_modified }
}

fn bounds(bounds: operation::SequenceBounds) -> SequenceBounds {
    let operation::SequenceBounds { at_most, below, equal } = bounds;
    SequenceBounds { at_most, below, equal }
}
