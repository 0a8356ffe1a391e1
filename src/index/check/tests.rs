//! Each kind of damage is found, and nothing else.

use bytes::Bytes;

use super::CheckReport;
use super::check;
use crate::capacity::{AppendRequest, Capacity, Durability, ExtentKind};
use crate::index::api::*;
use crate::index::engine::testing::MemoryCapacity;
use crate::index::objects::fake::Partition;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::{Layout, StagedSummary};
use crate::index::rows::Family;
use crate::types::*;

const EXTENT: ExtentId = ExtentId::new(1);
const EPOCH: Epoch = Epoch::new(1);

/// A partition whose bytes lie in one extent.
struct Store {
    partition: Partition,
    capacity: MemoryCapacity,
    end: u64,
}

fn key(name: &str) -> BlobKey {
    let (account, container) = (AccountId::new(1), ContainerId::new(1));
    let name = BlobName::new(name).unwrap();
    BlobKey { account, container, collation: Collation::Utf16, name }
}

fn id(text: &str) -> BlockId {
    BlockId::from_bytes(text.as_bytes()).unwrap()
}

impl Store {
    async fn new() -> Self {
        let capacity = MemoryCapacity::default();
        capacity.create(EXTENT, ExtentKind::Data, EPOCH).await.unwrap();
        Self { partition: Partition::new(KeyRange::all()), capacity, end: 0 }
    }

    async fn store(&mut self, bytes: &[u8]) -> Location {
        let request = AppendRequest {
            extent: EXTENT,
            epoch: EPOCH,
            offset: ExtentOffset::new(self.end),
            payloads: vec![vec![Bytes::copy_from_slice(bytes)]],
            durability: Durability::Durable,
        };
        let appended = self.capacity.append(request).await.unwrap();
        self.end = appended.end.get();
        appended.locations[0]
    }

    fn put(&mut self, name: &str, content: NewContent, crc64: Crc64) {
        let put = PutBlob {
            key: key(name),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content,
            crc64,
            tier: None,
            fields: NewBlobFields::default(),
        };
        self.partition.write(&Write::PutBlob(put)).unwrap();
    }

    async fn stage(&mut self, name: &str, block: &str, bytes: &[u8]) {
        let location = self.store(bytes).await;
        let stage = StageBlock {
            key: key(name),
            guard: Guard::default(),
            id: id(block),
            content: NewContent::Stored(vec![location]),
            crc64: Crc64::of(bytes),
        };
        self.partition.write(&Write::StageBlock(stage)).unwrap();
    }

    fn commit(&mut self, name: &str, ids: &[String]) {
        let entry = |text: &String| BlockListEntry { source: BlockSource::Latest, id: id(text) };
        let commit = CommitBlocks {
            key: key(name),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            tags: Tags::default(),
            list: ids.iter().map(entry).collect(),
            tier: None,
        };
        self.partition.write(&Write::CommitBlocks(commit)).unwrap();
    }

    async fn check(&self) -> CheckReport {
        let mut steps = 0;
        let view = &self.partition.memory;
        let report = check(view, &self.capacity, &mut |_: &CheckReport| steps += 1).await;
        assert!(steps > 0, "no progress shown");
        report
    }

    /// The problems, one per line.
    async fn problems(&self) -> String {
        let report = self.check().await;
        report.problems.iter().map(|problem| format!("{problem}\n")).collect()
    }
}

/// Blobs `inline`, `stored`, `blocks`, `long` (two segments, repeats); staged blocks under
/// `staged`; garbage.
async fn filled() -> Store {
    let mut store = Store::new().await;
    let account = AccountName::new("abc").unwrap();
    store
        .partition
        .write(&Write::CreateAccount { name: account, id: AccountId::new(1), anonymous: false })
        .unwrap();
    let create = CreateContainer {
        account: AccountId::new(1),
        name: ContainerName::new("abc").unwrap(),
        id: ContainerId::new(1),
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    };
    store.partition.write(&Write::CreateContainer(create)).unwrap();
    store.put("inline", NewContent::Inline("hello".into()), Crc64::of(b"hello"));
    let (a, b) = (store.store(b"first ").await, store.store(&[7; 1000]).await);
    let whole = [b"first ".as_slice(), &[7; 1000]].concat();
    store.put("stored", NewContent::Stored(vec![a, b]), Crc64::of(&whole));
    for block in ["1", "2", "3"] {
        store.stage("blocks", block, block.as_bytes()).await;
        store.stage("long", block, &[b'x'; 300]).await;
        store.stage("staged", block, block.as_bytes()).await;
    }
    store.commit("blocks", &["2", "1"].map(str::to_owned));
    let ids: Vec<String> = (0..1_500).map(|n| format!("{}", n % 3 + 1)).collect();
    store.commit("long", &ids);
    store
}

#[tokio::test]
async fn whole_store_has_no_problem() {
    let report = filled().await.check().await;
    assert_eq!(report.problems, []);
    assert_eq!((report.accounts, report.containers, report.blobs), (1, 1, 4));
    assert_eq!((report.staged_blocks, report.garbage_locations), (3, 1));
    // Blocks that a list repeats are read once.
    assert_eq!(report.locations, 2 + 2 + 3 + 3);
    assert_eq!(report.bytes, 5 + 1_006 + 2 + 900 + 3);
}

#[tokio::test]
async fn flipped_byte_is_found_with_its_blob() {
    let store = filled().await;
    for frame in 0..store.capacity.frames(EXTENT) {
        store.capacity.flip(EXTENT, frame, 3);
        let problems = store.problems().await;
        let lines = problems.lines().count();
        // The garbage block "3" of `blocks` is not read.
        assert!(lines == 1 || (lines == 0 && frame == 13), "frame {frame}: {problems}");
        store.capacity.flip(EXTENT, frame, 3);
    }
}

#[tokio::test]
async fn wrong_checksum_at_ingest_is_found() {
    let mut store = Store::new().await;
    store.put("inline", NewContent::Inline("hello".into()), Crc64::of(b"other"));
    assert_eq!(store.problems().await, "\"inline\": bytes differ from their CRC-64\n");
}

#[tokio::test]
async fn missing_rows_are_found() {
    let whole = filled().await;
    let blob = |name: &str| RoutingKey::blob(&key(name));
    for (family, name, expected) in [
        (Family::Main, "long", "a segment that no layout names"),
        (Family::Layout, "long", " of 2 segments"),
        (Family::Staged, "staged", "staged blocks, summary"),
    ] {
        let rows = whole.partition.memory.rows.keys();
        let of_blob =
            rows.filter(|(f, row)| *f == family && row.starts_with(blob(name).as_bytes()));
        for row in of_blob {
            let mut store = Store { partition: whole.partition.clone(), ..filled().await };
            store.partition.memory.rows.remove(row);
            let problems = store.problems().await;
            assert!(problems.contains(expected), "{row:?}: {problems}");
        }
    }
}

#[tokio::test]
async fn staged_blocks_may_have_longer_ids_than_committed_ones() {
    let mut store = filled().await;
    store.stage("blocks", "a longer id", b"new").await;
    assert_eq!(store.problems().await, "");
}

#[tokio::test]
async fn rows_that_disagree_are_found() {
    let blob = RoutingKey::blob(&key("staged"));
    let mut store = filled().await;
    let summary = StagedSummary { count: 3, id_len: 2, last_staged: Timestamp::ZERO };
    let rows = &mut store.partition.memory.rows;
    rows.insert((Family::Staged, keys::staged_summary(&blob)), values::encode(&summary));
    assert!(store.problems().await.contains("staged block ids differ in length"));

    let mut store = filled().await;
    let blob = RoutingKey::blob(&key("blocks"));
    let row = (Family::Main, blob.as_bytes().clone());
    let value = store.partition.memory.rows[&row].clone();
    let (mut record, content) =
        values::decode_record_head::<crate::index::BlobRecord>(Family::Main, &row.1, &value)
            .unwrap();
    let content = values::decode_content(&row.1, content).unwrap();
    record.len += 1;
    record.crc64 = Crc64::of(b"other");
    store.partition.memory.rows.insert(row.clone(), values::encode_blob(&record, &content));
    let problems = store.problems().await;
    assert!(problems.contains("2 bytes, the record says 3"), "{problems}");
    assert!(problems.contains("CRC-64 is not that of the record"), "{problems}");

    // Bytes that a blob uses must not await being freed.
    let mut store = filled().await;
    let Layout::Blocks(entries) = &content.layout else { panic!("not blocks") };
    let locations = entries[0].content.locations().to_vec();
    let garbage = values::GarbageValue { since: Timestamp::ZERO, locations };
    let garbage_key = keys::garbage(&blob, Timestamp::ZERO, 0);
    let rows = &mut store.partition.memory.rows;
    rows.insert((Family::Garbage, garbage_key), values::encode(&garbage));
    assert!(store.problems().await.contains("both used and garbage"));
}

#[tokio::test]
async fn cut_rows_are_found() {
    let whole = filled().await;
    for (row, value) in &whole.partition.memory.rows {
        let mut store = Store { partition: whole.partition.clone(), ..filled().await };
        let cut = value.slice(..value.len() - 1);
        store.partition.memory.rows.insert(row.clone(), cut);
        assert_ne!(store.problems().await, "", "{row:?}");
    }
}

#[tokio::test]
async fn unreadable_key_ends_the_check_with_a_problem() {
    let mut store = filled().await;
    let rows = &mut store.partition.memory.rows;
    rows.insert((Family::Layout, Bytes::from_static(b"short")), Bytes::new());
    assert!(store.problems().await.contains("rows cannot be read from here on"));
}

/// A page blob of four written pages, with a snapshot, cut to two.
async fn cut_page_blob() -> Store {
    let mut store = filled().await;
    let (key, guard) = (key("pages"), Guard::default());
    let put = PutBlob {
        key: key.clone(),
        guard: guard.clone(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Page { len: 4 * PAGE_BYTES, sequence: 0 },
        tags: Tags::default(),
        content: NewContent::Inline(Bytes::new()),
        crc64: Crc64::of(b""),
        tier: None,
        fields: NewBlobFields::default(),
    };
    let content = NewContent::Inline(vec![7; 4 * usize::try_from(PAGE_BYTES).unwrap()].into());
    let write = WritePages {
        key: key.clone(),
        guard: guard.clone(),
        sequence: SequenceBounds::default(),
        range: 0..4 * PAGE_BYTES,
        content: Some(content),
    };
    let len = Some(2 * PAGE_BYTES);
    let cut = UpdatePages {
        key: key.clone(),
        guard: guard.clone(),
        properties: None,
        len,
        sequence: None,
    };
    for write in [
        Write::PutBlob(put),
        Write::WritePages(write),
        Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }),
        Write::UpdatePages(cut),
    ] {
        store.partition.write(&write).unwrap();
    }
    store
}

#[tokio::test]
async fn what_hides_older_pages_may_lie_beyond_the_end() {
    assert_eq!(cut_page_blob().await.problems().await, "");
}

#[tokio::test]
async fn pages_beyond_the_end_are_found() {
    let mut store = cut_page_blob().await;
    let blob = RoutingKey::blob(&key("pages"));
    let rows = &mut store.partition.memory.rows;
    let hidden =
        rows.keys().filter(|(f, row)| *f == Family::Layout && row.starts_with(blob.as_bytes()));
    let last = hidden.last().unwrap().clone();
    let content = Some(values::Content::Inline(vec![9; 512].into()));
    let span = values::Span { len: 512, skip: 0, content };
    rows.insert(last, values::encode(&span));
    let problems = store.problems().await;
    assert!(problems.contains("lie beyond the end 1024"), "{problems}");
}

/// Four blobs in three containers, each in a frame of its own; the first and the third are damaged.
async fn damaged_in_two_containers() -> CheckReport {
    let mut store = Store::new().await;
    for (container, name) in [(1, "a"), (1, "b"), (2, "a"), (3, "a")] {
        let location = store.store(name.as_bytes()).await;
        let put = PutBlob {
            key: BlobKey { container: ContainerId::new(container), ..key(name) },
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: NewContent::Stored(vec![location]),
            crc64: Crc64::of(name.as_bytes()),
            tier: None,
            fields: NewBlobFields::default(),
        };
        store.partition.write(&Write::PutBlob(put)).unwrap();
    }
    assert_eq!(store.check().await.affected, super::Affected::default());
    store.capacity.flip(EXTENT, 0, 3);
    store.capacity.flip(EXTENT, 2, 3);
    store.check().await
}

#[tokio::test]
async fn damage_is_counted_by_extent_and_container() {
    let mut report = damaged_in_two_containers().await;
    assert_eq!((report.blobs, report.affected.blobs), (4, 2));
    let of = &report.affected.extents[&EXTENT];
    let owner = |container| (AccountId::new(1), ContainerId::new(container));
    let counted: Vec<_> = of.by_container.iter().map(|(owner, blobs)| (*owner, *blobs)).collect();
    assert_eq!(counted, [(owner(1), 1), (owner(2), 1)]);
    assert_eq!((of.blobs, of.containers), (2, 2));

    // A container in several partitions counts once: that where one ends and the next begins.
    let mut next = CheckReport::default();
    next.affected
        .note(&RoutingKey::blob(&BlobKey { container: owner(2).1, ..key("b") }), &[EXTENT].into());
    report.add(next);
    let of = &report.affected.extents[&EXTENT];
    assert_eq!((of.blobs, of.containers, of.by_container[&owner(2)]), (3, 2, 2));
}

#[tokio::test]
async fn many_damaged_containers_are_counted_in_bounded_memory() {
    let mut report = CheckReport::default();
    for container in 1..=1_000 {
        let key = BlobKey { container: ContainerId::new(container), ..key("a") };
        report.affected.note(&RoutingKey::blob(&key), &[EXTENT].into());
    }
    let of = &report.affected.extents[&EXTENT];
    assert_eq!((of.blobs, of.containers, of.by_container.len()), (1_000, 1_000, 100));
}

mod versions;
