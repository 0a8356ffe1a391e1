//! An index of several partitions in memory, and a capacity that only keeps books.

use crate::types::ExtentOffset;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::capacity;
use crate::capacity::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::env::Clock;
use crate::env::Env;
use crate::env::Rand;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::index::api::Damage;
use crate::index::api::Error;
use crate::index::api::NewBlobFields;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::*;
use crate::reclaim::Partitions;
use crate::reclaim::Reclaim;
use crate::reclaim::ReclaimConfig;
use crate::reclaim::ReclaimMetrics;
use crate::reclaim::Setup;
use crate::types::*;

pub(super) const ACCOUNT: AccountId = AccountId::new(1);
pub(super) const CONTAINER: ContainerId = ContainerId::new(7);

/// Called with the host's partitions between two pages of a walk.
type Hook = Box<dyn FnMut(&mut Vec<Partition>) + Send>;

/// Partitions in key order; the epoch is that of all of them.
pub(super) struct FakeIndex {
    pub(super) partitions: Mutex<Vec<Partition>>,
    pub(super) epoch: Mutex<u64>,
    pub(super) owned: Mutex<Vec<ExtentId>>,
    pub(super) recorded: Mutex<BTreeSet<ExtentId>>,
    pub(super) fail_reads_of: Mutex<Option<usize>>,
    pub(super) fail_writes_of: Mutex<Option<usize>>,
    pub(super) quarantined: Mutex<Option<usize>>,
    pub(super) slow_writes: Mutex<Duration>,
    pub(super) slow_reads: Mutex<Duration>,
    pub(super) between_pages: Mutex<Option<Hook>>,
    pub(super) clock: Arc<SimClock>,
}

impl std::fmt::Debug for FakeIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeIndex")
    }
}

impl FakeIndex {
    fn at(&self, target: Target) -> Result<usize, Error> {
        let number = usize::try_from(target.partition.get()).unwrap();
        let known = number < self.partitions.lock().unwrap().len();
        if known && *self.quarantined.lock().unwrap() == Some(number) {
            Err(Error::Corrupt(Damage::Quarantined(target.partition)))
        } else if known && target.epoch.get() == *self.epoch.lock().unwrap() {
            Ok(number)
        } else {
            Err(Error::WrongPartition)
        }
    }

    /// Carries out a write where it belongs.
    pub(super) fn must(&self, write: &Write) -> WriteReply {
        let now = self.clock.now();
        write_to(&mut self.partitions.lock().unwrap(), write, now)
    }

    /// Every location any row names, and how many rows there are.
    pub(super) fn named(&self) -> Vec<Location> {
        let partitions = self.partitions.lock().unwrap();
        partitions.iter().flat_map(named_by).collect()
    }

    pub(super) fn rows(&self) -> usize {
        self.partitions.lock().unwrap().iter().map(|p| p.memory.rows.len()).sum()
    }
}

pub(super) fn write_to(partitions: &mut [Partition], write: &Write, now: Timestamp) -> WriteReply {
    let key = write.routing_key();
    let owner = partitions.iter_mut().find(|p| p.memory.range.contains(&key)).unwrap();
    owner.now = owner.now.max(now);
    owner.write(write).unwrap()
}

pub(super) fn named_by(partition: &Partition) -> Vec<Location> {
    let read = Read::References(ListReferences::all());
    let ReadReply::References(found) = partition.read(&read).unwrap() else { panic!("no answer") };
    if found.next.is_some() {
        panic!("cut off");
    }
    found.locations
}

#[async_trait]
impl IndexHost for FakeIndex {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        let number = self.at(target)?;
        if *self.fail_reads_of.lock().unwrap() == Some(number) {
            return Err(Error::Corrupt(Damage::Rows("as planned".to_owned())));
        }
        let slow = *self.slow_reads.lock().unwrap();
        self.clock.sleep(slow).await;
        let reply = self.partitions.lock().unwrap()[number].read(&read);
        if let (Read::References(list), Ok(ReadReply::References(page))) = (&read, &reply) {
            assert!(page.locations.len() <= list.locations, "too much in one answer");
        }
        if matches!(read, Read::References(_))
            && let Some(hook) = self.between_pages.lock().unwrap().as_mut()
        {
            hook(&mut self.partitions.lock().unwrap());
        }
        reply
    }

    async fn write_shared(&self, target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        let number = self.at(target)?;
        if *self.fail_writes_of.lock().unwrap() == Some(number) {
            return Err(Error::Unavailable("as planned".to_owned()));
        }
        let slow = *self.slow_writes.lock().unwrap();
        self.clock.sleep(slow).await;
        let partition = &mut self.partitions.lock().unwrap()[number];
        assert!(write.place().is_in(&partition.memory.range.clone().into()), "wrong partition");
        partition.now = partition.now.max(self.clock.now());
        partition.write(&write)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        self.owned.lock().unwrap().clone()
    }
}

#[async_trait]
impl Partitions for FakeIndex {
    async fn map(&self) -> Result<PartitionMap, Error> {
        let epoch = Epoch::new(*self.epoch.lock().unwrap());
        let partitions = self.partitions.lock().unwrap();
        let descriptors = (0..).zip(partitions.iter()).map(|(id, p)| PartitionDescriptor {
            id: PartitionId::new(id),
            keys: p.memory.range.clone().into(),
            epoch,
            log: vec![ExtentId::new(1_000 + id)],
            host: HostId::new(0),
        });
        Ok(PartitionMap::new(descriptors.collect()).unwrap())
    }

    async fn extents(&self) -> Result<BTreeSet<ExtentId>, Error> {
        Ok(self.recorded.lock().unwrap().clone())
    }
}

/// What one extent holds: logical ranges that are not freed.
#[derive(Clone, Debug)]
pub(super) struct FakeExtent {
    pub(super) kind: ExtentKind,
    pub(super) state: ExtentState,
    pub(super) live: BTreeSet<u64>,
}

/// Extents by id. A frame is one byte of header, then the payload.
#[derive(Debug, Default)]
pub(super) struct FakeCapacity {
    pub(super) extents: Mutex<BTreeMap<ExtentId, FakeExtent>>,
    pub(super) poisoned: Mutex<bool>,
    /// Those on a disk of their own that is poisoned.
    pub(super) poisoned_extents: Mutex<BTreeSet<u64>>,
    /// The next call that frees or retains panics.
    pub(super) trap: AtomicBool,
    /// The reports of audits, one after the other.
    pub(super) audited: Mutex<Vec<(ExtentId, Audited)>>,
}

impl FakeCapacity {
    pub(super) fn add(&self, id: u64, kind: ExtentKind, state: ExtentState, len: u64) {
        let extent = FakeExtent { kind, state, live: (0..len).collect() };
        self.extents.lock().unwrap().insert(ExtentId::new(id), extent);
    }

    pub(super) fn live(&self, id: u64) -> Vec<u64> {
        let extents = self.extents.lock().unwrap();
        extents
            .get(&ExtentId::new(id))
            .map(|e| e.live.iter().copied().collect())
            .unwrap_or_default()
    }

    pub(super) fn is_live(&self, location: &Location) -> bool {
        let extents = self.extents.lock().unwrap();
        let mut frames = self.frames_of(location);
        extents.get(&location.extent).is_some_and(|e| frames.all(|byte| e.live.contains(&byte)))
    }

    fn check(&self) -> Result<(), capacity::Error> {
        if *self.poisoned.lock().unwrap() {
            return Err(capacity::Error::Poisoned { disk: 0 });
        }
        Ok(())
    }

    fn check_extent(&self, extent: ExtentId) -> Result<(), capacity::Error> {
        if self.poisoned_extents.lock().unwrap().contains(&extent.get()) {
            return Err(capacity::Error::Poisoned { disk: 1 });
        }
        self.check()
    }
}

#[async_trait]
impl Capacity for FakeCapacity {
    async fn create(&self, _: ExtentId, _: ExtentKind, _: Epoch) -> Result<(), capacity::Error> {
        panic!("reclaim creates nothing")
    }

    async fn append(&self, _: AppendRequest) -> Result<Appended, capacity::Error> {
        panic!("reclaim appends nothing")
    }

    async fn flush(&self, _: ExtentId, _: Epoch) -> Result<(), capacity::Error> {
        panic!("reclaim flushes nothing")
    }

    async fn read(&self, _: &Location, _: Range<u64>) -> Result<Vec<Bytes>, capacity::Error> {
        panic!("reclaim reads nothing")
    }

    async fn next_frame(
        &self,
        _: ExtentId,
        _: ExtentOffset,
    ) -> Result<Option<LogFrame>, capacity::Error> {
        panic!("reclaim reads nothing")
    }

    async fn fence(&self, _: ExtentId, _: Epoch) -> Result<(), capacity::Error> {
        panic!("reclaim fences nothing")
    }

    async fn seal(&self, id: ExtentId, _: Epoch) -> Result<ExtentOffset, capacity::Error> {
        let mut extents = self.extents.lock().unwrap();
        let extent = extents.get_mut(&id).ok_or(capacity::Error::NoSuchExtent { extent: id })?;
        extent.state = ExtentState::Sealed;
        Ok(ExtentOffset::START)
    }

    async fn free(&self, locations: &[Location]) -> Result<(), capacity::Error> {
        assert!(!self.trap.swap(false, Ordering::Relaxed), "sprung");
        let mut done = Ok(());
        let mut extents = self.extents.lock().unwrap();
        for location in locations {
            if let Err(error) = self.check_extent(location.extent) {
                done = Err(error);
                continue;
            }
            if let Some(extent) = extents.get_mut(&location.extent) {
                self.frames_of(location).for_each(|byte| {
                    extent.live.remove(&byte);
                });
            }
        }
        done
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), capacity::Error> {
        self.check_extent(extent)?;
        self.extents.lock().unwrap().remove(&extent);
        Ok(())
    }

    async fn retain(
        &self,
        id: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), capacity::Error> {
        assert!(!self.trap.swap(false, Ordering::Relaxed), "sprung");
        self.check_extent(id)?;
        assert!(live.windows(2).all(|pair| pair[0].end < pair[1].start), "not disjoint: {live:?}");
        let mut extents = self.extents.lock().unwrap();
        let extent = extents.get_mut(&id).ok_or(capacity::Error::NoSuchExtent { extent: id })?;
        assert_eq!((extent.kind, extent.state), (ExtentKind::Data, ExtentState::Sealed));
        extent.live.retain(|byte| live.iter().any(|range| range.contains(byte)));
        self.audited.lock().unwrap().push((id, audited));
        Ok(())
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        location.offset.get()..location.offset.get() + 1 + location.len.get()
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents.lock().unwrap();
        extents
            .iter()
            .map(|(id, extent)| ExtentInfo {
                extent: *id,
                kind: extent.kind,
                state: extent.state,
                epoch: Epoch::new(1),
                len: extent.live.last().map_or(0, |last| last + 1),
                freed: 0,
                disk: 0,
            })
            .collect()
    }

    async fn scrub(&self, _: ExtentId) -> Result<ScrubReport, capacity::Error> {
        panic!("reclaim scrubs nothing")
    }
}

#[derive(Debug)]
struct NoRand;

impl Rand for NoRand {
    fn next_u64(&self) -> u64 {
        4
    }
}

/// Reclaim with its fakes.
pub(super) struct Bench {
    pub(super) index: Arc<FakeIndex>,
    pub(super) capacity: Arc<FakeCapacity>,
    pub(super) inflight: InFlight,
    pub(super) store: SimulatedStore,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) clock: Arc<SimClock>,
    pub(super) env: Env,
    pub(super) metrics: ReclaimMetrics,
    pub(super) counted: Metrics,
}

impl Bench {
    /// Three partitions: before `c`, before `m`, and the rest of the container's names and beyond.
    pub(super) fn new() -> Self {
        let border = |name| {
            let key = RoutingKey::prefix(ACCOUNT, CONTAINER, name, Collation::Utf16);
            Some(RoutingKey::from_bytes(key))
        };
        let borders = [Some(RoutingKey::min()), border("c"), border("m"), None];
        let partitions = borders
            .windows(2)
            .map(|pair| Partition::new(KeyRange::new(pair[0].clone().unwrap(), pair[1].clone())));
        let clock = Arc::new(SimClock::new());
        let index = FakeIndex {
            partitions: Mutex::new(partitions.collect()),
            epoch: Mutex::new(1),
            owned: Mutex::default(),
            recorded: Mutex::default(),
            fail_reads_of: Mutex::default(),
            fail_writes_of: Mutex::default(),
            quarantined: Mutex::default(),
            slow_writes: Mutex::default(),
            slow_reads: Mutex::default(),
            between_pages: Mutex::default(),
            clock: Arc::clone(&clock),
        };
        let env =
            Env { clock: Arc::clone(&clock) as _, rand: Arc::new(NoRand), tasks: Tasks::new() };
        let store = SimulatedStore::new();
        Self {
            index: Arc::new(index),
            capacity: Arc::default(),
            inflight: InFlight::default(),
            coordinator: Arc::new(store.open(&env)),
            store,
            clock,
            env,
            metrics: ReclaimMetrics::default(),
            counted: Metrics::default(),
        }
    }

    pub(super) fn setup(&self) -> Setup {
        Setup {
            node: NodeId::new(0),
            host: Arc::clone(&self.index) as _,
            partitions: Arc::clone(&self.index) as _,
            capacity: Arc::clone(&self.capacity) as _,
            requests: LocalRequests::shared(self.inflight.clone(), Arc::clone(&self.env.clock)),
            coordinator: Arc::clone(&self.coordinator),
            env: self.env.clone(),
            config: ReclaimConfig { audit_blobs: 1, ..ReclaimConfig::default() },
            metrics: self.metrics.clone(),
            index: self.counted.clone(),
        }
    }

    pub(super) fn reclaim(&self) -> Arc<Reclaim> {
        Reclaim::new(self.setup())
    }

    pub(super) async fn after(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }
}

pub(super) fn location(extent: u64, offset: u64, len: u64) -> Location {
    Location {
        extent: ExtentId::new(extent),
        offset: ExtentOffset::new(offset),
        len: ByteLen::new(len),
        crc: Crc32c::EMPTY,
    }
}

pub(super) fn key(name: &str) -> BlobKey {
    let name = BlobName::new(name).unwrap();
    BlobKey { account: ACCOUNT, container: CONTAINER, collation: Collation::Utf16, name }
}

pub(super) fn put(name: &str, locations: &[Location]) -> Write {
    Write::PutBlob(PutBlob {
        key: key(name),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        content: NewContent::Stored(locations.to_vec()),
        crc64: Crc64::EMPTY,
        tier: None,
        fields: NewBlobFields::default(),
    })
}

pub(super) fn stage(name: &str, id: &str, locations: &[Location]) -> Write {
    Write::StageBlock(StageBlock {
        key: key(name),
        guard: Guard::default(),
        id: BlockId::from_bytes(id.as_bytes()).unwrap(),
        content: NewContent::Stored(locations.to_vec()),
        crc64: Crc64::EMPTY,
    })
}

pub(super) fn commit(name: &str, ids: &[&str]) -> Write {
    let entry = |id: &&str| BlockListEntry {
        source: BlockSource::Latest,
        id: BlockId::from_bytes(id.as_bytes()).unwrap(),
    };
    Write::CommitBlocks(CommitBlocks {
        key: key(name),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        list: ids.iter().map(entry).collect(),
        tier: None,
    })
}

pub(super) fn delete(name: &str) -> Write {
    Write::DeleteBlob(DeleteBlob {
        key: key(name),
        guard: Guard::default(),
        scope: DeleteScope::Blob,
    })
}
