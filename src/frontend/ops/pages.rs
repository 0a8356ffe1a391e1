//! Put Page, Get Page Ranges, length and sequence number.

use std::ops::Range;

use crate::frontend::body::RequestBody;
use crate::frontend::commit;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::encrypt::encrypt_md5;
use crate::frontend::encrypt::unlock;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::ingest;
use crate::frontend::ingest::Ingested;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::Stored;
use crate::index::FoundContainer;
use crate::index::Guard;
use crate::index::PageRanges;
use crate::index::PagesWritten;
use crate::index::ReadPages;
use crate::index::SequenceAction;
use crate::index::SequenceBounds;
use crate::index::UpdatePages;
use crate::index::WritePages;
use crate::index::WriteRequest;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::operation;
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

/// The pages that a Put Page writes or clears.
#[derive(Debug)]
pub(crate) struct TargetPages<'a> {
    pub(crate) blob: BlobTarget<'a>,
    /// The conditions on the blob's sequence number.
    pub(crate) sequence: operation::SequenceBounds,
    pub(crate) range: Range<u64>,
}

/// Pages of a blob whose container was found.
#[derive(Debug)]
pub(crate) struct LocatedPages {
    container: FoundContainer,
    key: BlobKey,
    guard: Guard,
    sequence: SequenceBounds,
    range: Range<u64>,
}

impl LocatedPages {
    /// Pages of the blob that was located.
    pub(crate) fn new(
        located: Located,
        sequence: operation::SequenceBounds,
        range: Range<u64>,
    ) -> Self {
        let operation::SequenceBounds { at_most, below, equal } = sequence;
        Self {
            container: located.container,
            key: located.blob.key,
            guard: lookup::guard(located.precondition),
            sequence: SequenceBounds { at_most, below, equal },
            range,
        }
    }
}

/// A Put Page, but for its bytes.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    pub(crate) pages: TargetPages<'a>,
    pub(crate) write: PageWrite,
    pub(crate) upload: Upload,
}

/// Put Page: bytes, then the row.
pub(crate) async fn put(
    front: &FrontEnd,
    put: Put<'_>,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let TargetPages { blob, sequence, range } = put.pages;
    let located = blob.locate_for_change(&front.rows).await?;
    match put.write {
        PageWrite::Update => {
            let encrypting = Encrypting::new(&front.env, located.precondition.encryption.key());
            let start = range.start;
            let ingested =
                ingest::ingest_pages(&front.pool, body, &put.upload, start, encrypting).await?;
            put_stored(front, LocatedPages::new(located, sequence, range), ingested).await
        }
        PageWrite::Clear => {
            // A checksum that the client sends must be that of an empty body.
            ingest::check_empty(&front.pool, body, &put.upload).await?;
            clear(front, LocatedPages::new(located, sequence, range)).await
        }
    }
}

/// Writes pages whose bytes are stored already.
pub(crate) async fn put_stored(
    front: &FrontEnd,
    pages: LocatedPages,
    ingested: Ingested,
) -> Result<Reply, Refusal> {
    let LocatedPages { container, key, guard, sequence, range } = pages;
    let encryption = guard.encryption.clone();
    let content = Some(ingested.stored.content());
    let write = WritePages { key, guard, sequence, range, content };
    let checksums = WrittenChecksums { crc64: ingested.crc64, md5: ingested.md5 };
    let done = commit(front, Some(container), write, Some(ingested.stored)).await?;
    Ok(with_encryption_header(written(done, Some(checksums)), &encryption))
}

async fn clear(front: &FrontEnd, pages: LocatedPages) -> Result<Reply, Refusal> {
    let LocatedPages { container, key, mut guard, mut sequence, mut range } = pages;
    loop {
        let write = WritePages {
            key: key.clone(),
            guard: guard.clone(),
            sequence,
            range: range.clone(),
            content: None,
        };
        let done = commit(front, Some(container.clone()), write, None).await?;
        let Some(rest) = done.rest else {
            return Ok(with_encryption_header(written(done, None), &guard.encryption));
        };
        range.start = rest;
        guard = without_conditions(guard);
        sequence = SequenceBounds::default();
    }
}

/// The guard of the later steps of a long change. The conditions were checked in its first step.
fn without_conditions(guard: Guard) -> Guard {
    Guard { conditions: Conditions::default(), ..guard }
}

/// The changes of a page blob by Set Blob Properties.
#[derive(Debug)]
pub(crate) struct PropertyChange {
    pub(crate) properties: Option<BlobProperties>,
    pub(crate) len: Option<u64>,
    pub(crate) sequence: Option<SequenceChange>,
}

/// Set Blob Properties with a length or sequence number.
pub(crate) async fn set(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    PropertyChange { mut properties, len, sequence }: PropertyChange,
) -> Result<Reply, Refusal> {
    let account = blob.account;
    let Located { blob, mut precondition, .. } = blob.locate_for_change(&front.rows).await?;
    unlock::fill_of_blob(front, account, (&blob, &mut precondition)).await?;
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
            key: blob.key.clone(),
            guard: guard.clone(),
            properties: properties.clone(),
            len,
            sequence,
        };
        let done = commit(front, None, write, None).await?;
        if done.rest.is_none() {
            return Ok(Reply::PagePropertiesSet { change: change(done), sequence: done.sequence });
        }
        guard = without_conditions(guard);
    }
}

/// The ranges that a Get Page Ranges wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeQuery {
    /// The snapshot to compare with, if any.
    pub(crate) since: Option<Timestamp>,
    pub(crate) range: Option<ByteRange>,
    /// Where the page before ended.
    pub(crate) marker: Option<u64>,
    pub(crate) max_results: u32,
}

/// Get Page Ranges.
pub(crate) async fn ranges(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    RangeQuery { since, range, marker, max_results }: RangeQuery,
) -> Result<Reply, Refusal> {
    let account = blob.account;
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    unlock::check_blob(front, account, &blob).await?;
    let BlobVersion { key, revision } = blob;
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
        let read = ReadPages { key, revision, since, guard, range, limit };
        let found = front.rows.router.ask(read).await;
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
            let change = facts::change(&record);
            return Ok(Reply::PageRanges { change, len: record.len, items, next });
        }
        from = next;
    }
}

async fn commit<W: WriteRequest<Reply = PagesWritten>>(
    front: &FrontEnd,
    container: Option<FoundContainer>,
    write: W,
    stored: Option<Stored>,
) -> Result<PagesWritten, Refusal> {
    let done = commit::commit_into(&front.rows, container, write, stored).await;
    done.map_err(|error| errors::from_index(&error, Subject::Blob))
}

fn written(done: PagesWritten, checksums: Option<WrittenChecksums>) -> Reply {
    Reply::PagesPut { change: change(done), sequence: done.sequence, checksums }
}

fn change(done: PagesWritten) -> Change {
    commit::change(done.written)
}
