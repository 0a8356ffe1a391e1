//! Answers to reads and writes, one of each variant at least.

use super::*;
use crate::index::record::CopyJob;

pub(in crate::index::api::tests) fn read_replies() -> Vec<ReadReply> {
    let mut replies = of_objects();
    replies.extend(of_sweeps());
    replies
}

/// Answers about accounts, containers and blobs.
fn of_objects() -> Vec<ReadReply> {
    let (after, next) = (vec![position()], Some(position()));
    let entry = ContainerEntry { name: container_name(), record: container_record() };
    let containers = ContainerPage {
        entries: vec![entry],
        after: after.clone(),
        weight: 9,
        next: next.clone(),
        seen: 3,
    };
    let entries = vec![AccountEntry { name: "account".to_owned(), record: account_record() }];
    let view = BlobView {
        is_current: true,
        record: record(),
        range: 0..5,
        pieces: pieces(),
        pieces_end: 5,
        generation: Some(1),
    };
    let block = BlockView { id: BlockId::from_bytes(b"id").unwrap(), len: 1 };
    let list =
        BlockListView { record: None, committed: vec![block.clone()], uncommitted: vec![block] };
    let checksums = vec![ChecksumValue::from(Crc64::EMPTY).of_whole()];
    let parts = vec![BlobPartView { number: 3, len: u64::MAX, checksums }];
    let parts = BlobPartsView { record: record(), total: Some(9), parts, more: true };
    let ranges = vec![PageRange { range: 0..512, cleared: true }];
    let pages = PageRanges { record: record(), ranges, next: Some(512) };
    let (name, record) = ("n".to_owned(), Box::new(record()));
    let entries_of_list = vec![
        ListEntry::Blob { name: name.clone(), revision: Revision::Snapshot(TIME), record },
        ListEntry::Uncommitted { name: name.clone() },
        ListEntry::Upload { name: name.clone(), id: upload_id(), record: Box::new(upload()) },
        ListEntry::Prefix { name },
    ];
    let blobs =
        ListPage { entries: entries_of_list, after, weight: 1, next: next.clone(), seen: 3 };
    vec![
        ReadReply::Account(Box::new(account_record())),
        ReadReply::Accounts(AccountPage { entries, next }),
        ReadReply::Container(Box::new(container_record())),
        ReadReply::Setting(Some(Box::new(setting()))),
        ReadReply::Containers(containers),
        ReadReply::Blob(Box::new(view)),
        ReadReply::BlockList(Box::new(list)),
        ReadReply::BlobParts(Box::new(parts)),
        ReadReply::Pages(Box::new(pages)),
        ReadReply::Blobs(Box::new(blobs)),
        ReadReply::Part(PartRange { range: 1..9, parts: Some(2), etag: Etag::from_commit(TIME) }),
        ReadReply::Parts(Box::new(PartPage {
            record: upload(),
            parts: vec![part()],
            is_truncated: true,
        })),
    ]
}

/// Answers to reclaim.
fn of_sweeps() -> Vec<ReadReply> {
    let tag = TagEntryKey { key: "k".to_owned(), value: "v".to_owned(), blob: blob() };
    let entry = TagEntry { key: tag, time: TIME, container: container_name() };
    let job = CopyJob {
        id: Uuid::from_u128(4),
        source: secret(),
        etag: Some("\"e\"".to_owned()),
        md5: Some(Md5::of(b"x")),
        crc64: Some(Crc64::of(b"x")),
        lease: None,
    };
    let row = position();
    let work = TagWork { row, blob: blob(), time: TIME, removed: tags(), added: Tags::default() };
    let garbage = GarbageRow {
        key: position(),
        since: TIME,
        locations: vec![location(0)],
        layer: Some(blob()),
    };
    let dead = DeletedContainer { account: ACCOUNT, container: CONTAINER, deleted: TIME };
    let staged = StagedBlocks { key: blob(), last_staged: TIME };
    let next = || Some(position());
    vec![
        ReadReply::Tags(TagPage { entries: vec![entry], next: next(), seen: 1 }),
        ReadReply::CopyJobs(CopyJobPage {
            jobs: vec![PendingCopy { blob: blob(), job }],
            next: next(),
        }),
        ReadReply::TagWork(TagWorkPage { work: vec![work], next: next() }),
        ReadReply::Garbage(GarbagePage { rows: vec![garbage], next: next() }),
        ReadReply::DeadContainers(vec![dead]),
        ReadReply::Expired(ExpiredPage { blobs: vec![staged], next: next() }),
        ReadReply::EndedDeletions(EndedPage { blobs: vec![blob()], next: Some(position()) }),
        ReadReply::References(References {
            locations: vec![location(0)],
            next: Some(ReferencePlace { key: position(), after: Some(location(0)) }),
        }),
    ]
}

pub(in crate::index::api::tests) fn pieces() -> Vec<Piece> {
    let inline = || Piece::Inline(Bytes::from_static(b"bytes"));
    let stored = || Piece::Stored { location: location(3), range: 0..1 };
    let piece = |piece| Box::new(piece);
    vec![
        inline(),
        stored(),
        Piece::Encrypted { nonce: NONCE, at: 1 << 33, piece: piece(inline()) },
        Piece::Encrypted { nonce: NONCE, at: 0, piece: piece(stored()) },
        Piece::Authenticated { nonce: NONCE, len: 9, range: 0..1, piece: piece(stored()) },
        Piece::Zeros(u64::MAX),
    ]
}

pub(in crate::index::api::tests) fn lease_results() -> Vec<LeaseResult> {
    vec![
        LeaseResult::Acquired(lease()),
        LeaseResult::Renewed(lease()),
        LeaseResult::Changed(lease()),
        LeaseResult::Released,
        LeaseResult::Broken { lease: lease(), left: Duration::from_nanos(100) },
    ]
}

pub(in crate::index::api::tests) fn write_replies() -> Vec<WriteReply> {
    let block = CopiedBlock {
        id: BlockId::from_bytes(&[0; 64]).unwrap(),
        len: 1,
        crc64: Crc64::EMPTY,
        content: NewContent::Shared(vec![location(0)]),
        checksums: vec![ChecksumValue::from(Crc64::EMPTY).of_whole()],
    };
    let content = Some(CopiedContent::Blocks(vec![block]));
    let whole = CopiedContent::Whole(NewContent::Shared(vec![location(0)]));
    let share = |content| {
        let Location { extent, offset, len, .. } = location(0);
        let frames = vec![Frames { extent, offset, len }];
        WriteReply::Shared(Box::new(SharedBlob { record: record(), content, frames }))
    };
    let span = PageSpan { range: 0..512, skip: 1, content: Some(NewContent::Shared(Vec::new())) };
    let pages = PagesWritten { written: written(), sequence: 4, rest: Some(512) };
    let taken = Snapshotted { snapshot: TIME, written: written() };
    let results = lease_results().into_iter();
    let leased = results.map(|result| Leased { written: written(), result, now: TIME });
    let mut replies: Vec<WriteReply> = leased.map(WriteReply::Leased).collect();
    replies.extend([
        WriteReply::Account(Box::new(account_record())),
        WriteReply::Closed(Box::new(container_record())),
        WriteReply::Written(written()),
        share(content),
        share(Some(whole)),
        share(Some(CopiedContent::Pages { layer: 1, len: 512 })),
        share(None),
        WriteReply::SharedPages(SharedPages { spans: vec![span], next: Some(1) }),
        WriteReply::Layer(u64::MAX),
        WriteReply::Pages(pages),
        WriteReply::PartStaged(Box::new(part())),
        WriteReply::UploadCompleted(Box::new(UploadCompleted {
            written: written(),
            tag: ContentEtag::parts(Md5::of(b"x"), 2),
            checksums: vec![checksum()],
        })),
        WriteReply::Appended(AppendedBlock { written: written(), offset: 1, blocks: 2 }),
        WriteReply::Snapshotted(taken),
        WriteReply::TierSet { pending: true },
        WriteReply::Done,
        WriteReply::Deleted(Deleted {
            version: Some(VersionId::null(TIME)),
            is_marker: true,
            is_kept: true,
        }),
        WriteReply::Undeleted { has_more: true },
        WriteReply::Purged { next: Some(position()) },
    ]);
    replies
}
