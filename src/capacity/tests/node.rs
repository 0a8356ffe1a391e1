//! Tests on the machine's disk, in a temporary directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use super::payload;
use crate::capacity::disk::store::path_of;
use crate::capacity::units::index;
use crate::capacity::*;
use crate::env::clock::OsClock;
use crate::env::disk_os::OsDisk;
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

pub(super) const DATA: ExtentId = ExtentId::new(0x17);
pub(super) const LOG: ExtentId = ExtentId::new(0x1234);
pub(super) const ONE: Epoch = Epoch::new(1);

pub(super) fn env(seed: u64) -> Env {
    Env {
        clock: Arc::new(OsClock::new()),
        rand: Arc::new(SeededRand::new(seed)),
        tasks: Tasks::new(),
    }
}

pub(super) struct Rig {
    folder: TempDir,
    node: Option<Arc<CapacityNode>>,
    pub(super) metrics: CapacityMetrics,
    config: CapacityConfig,
    seed: u64,
}

impl Rig {
    pub(super) async fn new() -> Self {
        Self::with_seed(7).await
    }

    pub(super) async fn with_seed(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = CapacityConfig {
            catalog: CatalogPlace::Folders(vec![folder.path().to_owned()]),
            ..CapacityConfig::small()
        };
        let mut rig =
            Self { folder, node: None, metrics: CapacityMetrics::default(), config, seed };
        rig.start().await;
        rig
    }

    pub(super) fn node(&self) -> &Arc<CapacityNode> {
        self.node.as_ref().unwrap()
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn try_start(&mut self) -> Result<(), OpenError> {
        let env = env(self.seed);
        let disk: Arc<dyn Disk> = OsDisk::open(self.path(), env.tasks.clone()).unwrap();
        self.metrics = CapacityMetrics::default();
        let config = self.config.clone();
        let node = CapacityNode::open(vec![disk], env, config, self.metrics.clone()).await?;
        self.node = Some(node);
        Ok(())
    }

    pub(super) async fn start(&mut self) {
        self.try_start().await.unwrap();
    }

    /// Starts the node and expects that the start fails.
    pub(super) async fn stopped_start(&mut self) {
        self.settle().await;
        self.start().await;
    }

    /// Stops the node. If `clean` is false, no more bytes are written, as after a kill.
    pub(super) async fn stop(&mut self, clean: bool) {
        let node = self.node.take().unwrap();
        if clean {
            node.shutdown().await;
        }
        drop(node);
        self.settle().await;
    }

    async fn settle(&self) {
        // Running tasks keep the directory locked until they end.
        for _ in 0..2000 {
            match OsDisk::open(self.path(), Tasks::new()) {
                Ok(_) => return,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        panic!("the directory stays locked");
    }

    pub(super) async fn restart(&mut self, clean: bool) {
        self.stop(clean).await;
        self.start().await;
    }

    pub(super) async fn append(
        &self,
        extent: ExtentId,
        offset: u64,
        payloads: &[Bytes],
        durability: Durability,
    ) -> Result<Appended, Error> {
        let payloads = payloads.iter().map(|p| vec![p.clone()]).collect();
        let request = AppendRequest {
            extent,
            epoch: ONE,
            offset: ExtentOffset::new(offset),
            payloads,
            durability,
        };
        self.node().append(request).await
    }

    pub(super) async fn read(&self, location: &Location) -> Result<Vec<u8>, Error> {
        Ok(self.node().read(location, 0..location.len.get()).await?.concat())
    }

    pub(super) fn extent_file(&self, extent: ExtentId) -> std::path::PathBuf {
        self.path().join(path_of(extent))
    }
}

#[tokio::test]
async fn appended_bytes_read_back_before_and_after_seal_and_restart() {
    let mut rig = Rig::new().await;
    rig.node().create(DATA, ExtentKind::Data, ONE).await.unwrap();
    let lens = [1u64, 10, 4096, 16_384, 16_385, 40_000, 70_000, 1 << 20, (1 << 20) + 5, 3 << 20];
    let mut end = 0;
    let mut stored = Vec::new();
    for (seed, len) in (0..).zip(lens) {
        for durability in [Durability::Durable, Durability::Deferred] {
            let bytes = payload(seed, len);
            let appended =
                rig.append(DATA, end, std::slice::from_ref(&bytes), durability).await.unwrap();
            assert_eq!(appended.end, end_after(ExtentOffset::new(end), &[len]));
            assert_eq!(appended.locations[0].crc, Crc32c::of(&bytes));
            end = appended.end.get();
            stored.push((appended.locations[0], bytes));
        }
    }
    for (location, bytes) in &stored {
        assert_eq!(rig.read(location).await.unwrap(), *bytes);
    }
    rig.node().flush(DATA, ONE).await.unwrap();
    for restart in [None, Some(false), Some(true)] {
        match restart {
            None => assert_eq!(rig.node().seal(DATA, ONE).await.unwrap(), ExtentOffset::new(end)),
            Some(clean) => rig.restart(clean).await,
        }
        let info = rig.node().extents().await;
        assert_eq!((info[0].state, info[0].len), (ExtentState::Sealed, end));
        for (location, bytes) in &stored {
            assert_eq!(rig.read(location).await.unwrap(), *bytes);
            let len = location.len;
            for range in [
                0..1.min(len.get()),
                len.get() / 3..len.get() / 2,
                len.get() - 1..len.get(),
                len.get() / 2..len.get() / 2,
            ] {
                let part = rig.node().read(location, range.clone()).await.unwrap().concat();
                assert_eq!(part, bytes[index(range.start)..index(range.end)]);
            }
        }
    }
    let report = rig.node().scrub(DATA).await.unwrap();
    assert_eq!(report.corrupt, vec![]);
    assert_eq!(report.frames, 2 * (8 + 2 + 3));
}

#[tokio::test]
async fn acknowledged_small_appends_survive_an_unclean_stop() {
    let mut rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    rig.node().create(DATA, ExtentKind::Data, ONE).await.unwrap();
    let mut ends = [0, 0];
    let mut stored = Vec::new();
    // Several times around the ring.
    for round in 0..400 {
        for (n, extent) in [LOG, DATA].into_iter().enumerate() {
            let bytes = payload(round, 100 + (round * 37) % 5000);
            let appended = rig
                .append(extent, ends[n], std::slice::from_ref(&bytes), Durability::Durable)
                .await
                .unwrap();
            ends[n] = appended.end.get();
            stored.push((appended.locations[0], bytes));
        }
    }
    rig.restart(false).await;
    for (location, bytes) in &stored {
        assert_eq!(rig.read(location).await.unwrap(), *bytes);
    }
    let infos = rig.node().extents().await;
    assert!(infos.iter().all(|info| info.state == ExtentState::Sealed));
    assert_eq!(infos.iter().map(|info| info.len).collect::<Vec<_>>(), vec![ends[1], ends[0]]);
    let mut offset = 0;
    let mut frames = 0;
    while let Some(frame) = rig.node().next_frame(LOG, ExtentOffset::new(offset)).await.unwrap() {
        let expected = &stored[frames * 2];
        assert_eq!((frame.offset, &frame.payload), (expected.0.offset, &expected.1));
        offset = frame.next.get();
        frames += 1;
    }
    assert_eq!(frames, 400);
}

#[tokio::test]
async fn append_is_refused_at_a_wrong_offset_epoch_or_after_seal() {
    let rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let bytes = [payload(1, 500)];
    let appended = rig.append(LOG, 0, &bytes, Durability::Durable).await.unwrap();
    let wrong = rig.append(LOG, 0, &bytes, Durability::Durable).await;
    assert!(matches!(wrong, Err(Error::WrongOffset { expected, .. }) if expected == appended.end));
    rig.node().fence(LOG, Epoch::new(5)).await.unwrap();
    let fenced = rig.append(LOG, appended.end.get(), &bytes, Durability::Durable).await;
    assert!(matches!(fenced, Err(Error::Fenced { epoch, .. }) if epoch == Epoch::new(5)));
    assert!(matches!(rig.node().seal(LOG, ONE).await, Err(Error::Fenced { .. })));
    assert!(matches!(rig.node().fence(LOG, ONE).await, Err(Error::Fenced { .. })));
    assert_eq!(rig.node().seal(LOG, Epoch::new(5)).await.unwrap(), appended.end);
    let request = AppendRequest {
        extent: LOG,
        epoch: Epoch::new(6),
        offset: appended.end,
        payloads: vec![vec![payload(1, 5)]],
        durability: Durability::Durable,
    };
    assert!(matches!(rig.node().append(request).await, Err(Error::Sealed { .. })));
    assert!(matches!(
        rig.append(DATA, 0, &bytes, Durability::Durable).await,
        Err(Error::NoSuchExtent { .. })
    ));
}

#[tokio::test]
async fn concurrent_small_appends_share_syncs() {
    let rig = Rig::new().await;
    let mut appends = Vec::new();
    for n in 0..64u64 {
        let extent = ExtentId::new(n);
        rig.node().create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(n, 300);
        let node = Arc::clone(rig.node());
        appends.push(async move {
            let payloads = vec![vec![bytes]];
            let durability = Durability::Durable;
            let request = AppendRequest {
                extent,
                epoch: ONE,
                offset: ExtentOffset::START,
                payloads,
                durability,
            };
            node.append(request).await.unwrap()
        });
    }
    let before = rig.metrics.fsyncs.get();
    futures_util::future::join_all(appends).await;
    let syncs = rig.metrics.fsyncs.get() - before;
    assert!(syncs <= 16, "64 appends at once took {syncs} syncs");
}

#[tokio::test]
async fn each_way_to_append_costs_one_sync() {
    let rig = Rig::new().await;
    rig.node().create(DATA, ExtentKind::Data, ONE).await.unwrap();
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let syncs = |before: u64| rig.metrics.fsyncs.get() - before;
    let before = rig.metrics.fsyncs.get();
    let small = rig.append(LOG, 0, &[payload(1, 900)], Durability::Durable).await.unwrap();
    assert_eq!((syncs(before), rig.metrics.journal_batches.get()), (1, 1));
    rig.append(LOG, small.end.get(), &[payload(1, 90_000)], Durability::Durable).await.unwrap();
    assert_eq!((syncs(before), rig.metrics.journal_batches.get()), (2, 1));
    let mut end = 0;
    let mut merged: Option<Location> = None;
    for seed in 0..8 {
        let piece = payload(seed, FRAME_PAYLOAD_MAX);
        let appended = rig.append(DATA, end, &[piece], Durability::Deferred).await.unwrap();
        end = appended.end.get();
        let next = appended.locations[0];
        merged = Some(merged.map_or(next, |merged| merge(&merged, &next).unwrap()));
    }
    assert_eq!(syncs(before), 2);
    rig.node().flush(DATA, ONE).await.unwrap();
    rig.node().flush(DATA, ONE).await.unwrap();
    assert_eq!(syncs(before), 3);
    // A small append after deferred bytes syncs these first.
    let more = rig.append(DATA, end, &[payload(1, 70_000)], Durability::Deferred).await.unwrap();
    rig.append(DATA, more.end.get(), &[payload(1, 10)], Durability::Durable).await.unwrap();
    assert_eq!((syncs(before), rig.metrics.journal_batches.get()), (5, 2));
    let merged = merged.unwrap();
    assert_eq!(Crc32c::of(&rig.read(&merged).await.unwrap()), merged.crc);
}

#[tokio::test]
async fn empty_append_checks_and_changes_nothing() {
    let rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let nothing = rig.append(LOG, 0, &[], Durability::Durable).await.unwrap();
    assert_eq!(nothing, Appended { locations: vec![], end: ExtentOffset::START });
    let wrong = rig.append(LOG, 9, &[], Durability::Durable).await;
    assert!(matches!(wrong, Err(Error::WrongOffset { expected: ExtentOffset::START, .. })));
}

#[tokio::test]
async fn removing_extents_under_load_stops_no_checkpoint() {
    let rig = Rig::new().await;
    let mut round = 0;
    while rig.metrics.journal_bytes.get() < 8 * rig.config.journal_bytes {
        round += 1;
        let work = (0..4).map(|n| {
            let node = Arc::clone(rig.node());
            async move {
                let extent = ExtentId::new(round * 10 + n);
                node.create(extent, ExtentKind::Log, ONE).await.unwrap();
                let mut offset = 0;
                for seed in 0..6 {
                    let payloads = vec![vec![payload(seed, 9_000)]];
                    let durability = Durability::Durable;
                    let request = AppendRequest {
                        extent,
                        epoch: ONE,
                        offset: ExtentOffset::new(offset),
                        payloads,
                        durability,
                    };
                    offset = node.append(request).await.unwrap().end.get();
                }
                node.remove(extent).await.unwrap();
            }
        });
        futures_util::future::join_all(work).await;
    }
    assert_eq!(rig.metrics.poisoned_disks.get(), 0);
    assert_eq!(rig.node().extents().await, vec![]);
}

#[tokio::test]
async fn background_scrub_finds_damage_by_itself() {
    let mut rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let stored = rig.append(LOG, 0, &[payload(1, 900)], Durability::Durable).await.unwrap();
    rig.node().seal(LOG, ONE).await.unwrap();
    rig.config.scrub_bytes_per_second = 1 << 30;
    rig.config.scrub_pause = Duration::from_millis(1);
    rig.restart(true).await;
    super::damage::flip(&rig.extent_file(LOG), 4096 + stored.locations[0].offset.get() + 300);
    for _ in 0..1000 {
        if rig.metrics.corrupt_frames.get() > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never found");
}

#[tokio::test]
async fn shutdown_leaves_nothing_to_replay_and_refuses_appends() {
    let mut rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let stored = rig.append(LOG, 0, &[payload(1, 900)], Durability::Durable).await.unwrap();
    rig.node().shutdown().await;
    let late = rig.append(LOG, stored.end.get(), &[payload(1, 9)], Durability::Durable).await;
    assert!(late.is_err());
    rig.stop(false).await;
    let disk = OsDisk::open(rig.path(), Tasks::new()).unwrap();
    let report = check_disk(&disk, 0, &mut |_| {}).await.unwrap();
    assert_eq!((report.journal_records, report.frames, report.problems), (0, 1, vec![]));
}
