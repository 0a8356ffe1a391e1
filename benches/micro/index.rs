//! The index: committed writes of small blobs, point reads, pages of a list.

use std::sync::Arc;

use blockyard::capacity::Capacity;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::EmbeddedCoordinator;
use blockyard::coordinator::IdAllocator;
use blockyard::coordinator::counter::EXTENT_IDS;
use blockyard::index::Config;
use blockyard::index::Dependencies;
use blockyard::index::Guard;
use blockyard::index::History;
use blockyard::index::IndexHost;
use blockyard::index::IndexServer;
use blockyard::index::ListBlobs;
use blockyard::index::ListedFields;
use blockyard::index::Metrics;
use blockyard::index::NewBlobFields;
use blockyard::index::NewContent;
use blockyard::index::Objects;
use blockyard::index::PAGE_WEIGHT_MAX;
use blockyard::index::PartitionMap;
use blockyard::index::PutBlob;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadReply;
use blockyard::index::Target;
use blockyard::index::Write;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::BlobProperties;
use blockyard::types::ClusterNumber;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::Crc64;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::NodeId;
use blockyard::types::Revision;
use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use futures_util::future::join_all;

use crate::bed::Bed;
use crate::flights::Flights;
use crate::flights::Way;

/// Concurrent writes, as of this many connections.
const TOGETHER: u64 = 16;
/// Names of one page.
const PAGE: usize = 1_000;
/// Pairs of metadata of a blob.
const PAIRS: usize = 10;

/// An index of one partition.
struct Index {
    bed: Bed,
    host: IndexServer,
    target: Target,
    written: u64,
    /// The metadata of the blobs to be written.
    metadata: Metadata,
}

impl Index {
    fn new() -> Self {
        let bed = Bed::new();
        let (host, target) = bed.runtime.block_on(async {
            let file = bed.folder.path().join("coordinator.redb");
            let opened = EmbeddedCoordinator::open(&file, &bed.env).await;
            let coordinator: Arc<dyn Coordinator> = Arc::new(opened.expect("a coordinator"));
            let alone = ClusterNumber::ALONE;
            let ids = IdAllocator::new(Arc::clone(&coordinator), alone, EXTENT_IDS);
            let deps = Dependencies {
                node: NodeId::new(0),
                env: bed.env.clone(),
                capacity: Arc::clone(&bed.node) as Arc<dyn Capacity>,
                coordinator: Arc::clone(&coordinator),
                cluster: alone,
                extent_ids: Arc::new(ids),
                machine: Arc::new(Objects),
                leases: None,
                writers: None,
                metrics: Metrics::default(),
            };
            let host = IndexServer::open(vec![deps], Config::default()).await.expect("a host");
            let map = PartitionMap::load(coordinator.as_ref()).await.expect("a map");
            let owner = map.owner(&[]).expect("one partition");
            (host, Target::of(owner))
        });
        Self { bed, host, target, written: 0, metadata: Metadata::default() }
    }

    /// Writes `TOGETHER` new blobs at the same time.
    fn put(&mut self, body: &Bytes) {
        let writes = (0..TOGETHER).map(|i| {
            let put = PutBlob {
                key: key(self.written + i),
                guard: Guard::default(),
                properties: BlobProperties::default(),
                metadata: self.metadata.clone(),
                kind: NewKind::Block,
                tags: blockyard::types::Tags::default(),
                content: NewContent::Inline(body.clone()),
                crc64: Crc64::of(body),
                tier: None,
                fields: NewBlobFields::default(),
            };
            self.host.write(self.target, Write::PutBlob(put))
        });
        for written in self.bed.runtime.block_on(join_all(writes)) {
            written.expect("a write");
        }
        self.written += TOGETHER;
    }

    /// Writes more small blobs than a page has.
    fn put_page(&mut self) {
        let body = Bytes::from(vec![7; 64]);
        for _ in 0..200 {
            self.put(&body);
        }
    }

    /// The first page of a list.
    fn list(&self, shown: ListedFields) -> ReadReply {
        self.read(Read::Blobs(ListBlobs {
            account: AccountId::new(1),
            container: ContainerId::new(1),
            collation: Collation::Utf16,
            prefix: "small/".to_owned(),
            delimiter: None,
            start_from: None,
            end_before: None,
            from: None,
            limit: PAGE,
            weight_max: PAGE_WEIGHT_MAX,
            uncommitted: false,
            history: History::None,
            deleted: false,
            versions_only: false,
            shown,
        }))
    }

    fn read(&self, read: Read) -> ReadReply {
        self.bed.runtime.block_on(self.host.read(self.target, read)).expect("a read")
    }
}

fn key(number: u64) -> BlobKey {
    let name = BlobName::new(&format!("small/{number:08}")).expect("a name");
    let (account, container) = (AccountId::new(1), ContainerId::new(1));
    BlobKey { account, container, collation: Collation::Utf16, name }
}

/// Sixteen concurrent writes of new blobs of this size: the commit without the front end.
#[divan::bench(args = [64, 4096], sample_count = 1_000)]
fn put_inline(bencher: Bencher<'_, '_>, bytes: usize) {
    let mut index = Index::new();
    let body = Bytes::from(vec![7; bytes]);
    bencher.counter(ItemsCount::new(TOGETHER)).bench_local(|| index.put(&body));
}

/// The current blob of a name, content in the row, from the memtable.
#[divan::bench]
fn read_blob(bencher: Bencher<'_, '_>) {
    let mut index = Index::new();
    let body = Bytes::from(vec![7; 4096]);
    for _ in 0..64 {
        index.put(&body);
    }
    bencher.bench_local(|| {
        let read = ReadBlob {
            key: key(500),
            revision: Revision::Current,
            guard: Guard::default(),
            range: None,
            pieces: true,
        };
        index.read(Read::Blob(read))
    });
}

/// Concurrent lookups of one blob from all threads. The content is in the row, and the row in the
/// memtable or in a cached block of a run. Lookups are separate or joined.
#[divan::bench(args = [(false, Way::Alone), (true, Way::Alone), (false, Way::Joined), (true, Way::Joined)], sample_count = 50)]
fn read_hot_blob(bencher: Bencher<'_, '_>, (flushed, way): (bool, Way)) {
    const TASKS: u64 = 64;
    const EACH: u64 = 200;
    let mut index = Index::new();
    index.put(&Bytes::from(vec![7; 4096]));
    if flushed {
        index.bed.runtime.block_on(index.host.flush()).expect("a flush");
    }
    let (target, host) = (index.target, Arc::new(index.host));
    let flights = Arc::new(Flights::default());
    bencher.counter(ItemsCount::new(TASKS * EACH)).bench_local(|| {
        index.bed.runtime.block_on(async {
            let tasks = (0..TASKS).map(|_| {
                let (host, flights) = (Arc::clone(&host), Arc::clone(&flights));
                index.bed.env.tasks.spawn("lookups", async move {
                    for _ in 0..EACH {
                        let read = Read::Blob(ReadBlob {
                            key: key(7),
                            revision: Revision::Current,
                            guard: Guard::default(),
                            range: None,
                            pieces: true,
                        });
                        match way {
                            Way::Alone => drop(host.read(target, read).await.expect("a read")),
                            Way::Joined => drop(flights.read(&host, target, read).await),
                        }
                        // As a connection sends the next request only after the answer to the last
                        // one.
                        tokio::task::yield_now().await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.expect("a task");
            }
        });
    });
}

/// One page of names, from the memtable or from a run.
#[divan::bench(args = [false, true])]
fn list_page(bencher: Bencher<'_, '_>, flushed: bool) {
    let mut index = Index::new();
    index.put_page();
    if flushed {
        index.bed.runtime.block_on(index.host.flush()).expect("a flush");
    }
    let shown = ListedFields { metadata: false, copy: false, content_tag: false };
    bencher.counter(ItemsCount::new(PAGE)).bench_local(|| index.list(shown));
}

/// One page of blobs with metadata, which the list shows or not.
#[divan::bench(args = [false, true])]
fn list_page_of_metadata(bencher: Bencher<'_, '_>, shown: bool) {
    let mut index = Index::new();
    let pair = |number| (format!("name{number}"), format!("the value of number {number}"));
    index.metadata = Metadata::new((0..PAIRS).map(pair)).expect("metadata");
    index.put_page();
    let shown = ListedFields { metadata: shown, copy: false, content_tag: false };
    bencher.counter(ItemsCount::new(PAGE)).bench_local(|| index.list(shown));
}
