//! The pool over a real capacity node on a simulated disk.

mod checksums;
mod leaving;
mod open;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::FRAME_PAYLOAD_MAX;
use crate::coordinator::Fault;
use crate::coordinator::IdAllocator;
use crate::coordinator::SimulatedStore;
use crate::coordinator::counter::EXTENT_IDS;
use crate::env::Clock;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::frontend::write::Stored;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::WritePool;
use crate::frontend::write::budget::BodyMemory;
use crate::frontend::write::budget::PIECE_BYTES;
use crate::frontend::write::group_append::QUEUE_BODIES_MAX;
use crate::index::InFlight;
use crate::index::LocalRequests;
use crate::index::NewContent;
use crate::protocol::model::Reason;
use crate::types::AccountId;
use crate::types::ClusterNumber;
use crate::types::Location;

const ACCOUNT: AccountId = AccountId::new(1);

pub(in crate::frontend) struct Rig {
    disk: SimDisk,
    pub(in crate::frontend) node: Arc<CapacityNode>,
    pub(in crate::frontend) pool: WritePool,
    pub(in crate::frontend) env: Env,
    pub(in crate::frontend) inflight: InFlight,
    coordinator: SimulatedStore,
}

pub(in crate::frontend) async fn rig(capacity_bytes: u64, config: WriteConfig) -> Rig {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    let disk = SimDisk::new(1, capacity_bytes);
    let node = CapacityNode::open(
        vec![disk.disk()],
        env.clone(),
        CapacityConfig::small(),
        CapacityMetrics::default(),
    )
    .await
    .unwrap();
    let coordinator = SimulatedStore::new();
    let opened = Arc::new(coordinator.open(&env));
    let ids = Arc::new(IdAllocator::new(opened, ClusterNumber::ALONE, EXTENT_IDS));
    let inflight = InFlight::default();
    let capacity = Arc::clone(&node) as Arc<dyn Capacity>;
    let pool = WritePool::start(config, capacity, ids, inflight.clone(), env.clone());
    Rig { disk, node, pool, inflight, coordinator, env }
}

pub(in crate::frontend) fn bytes(len: usize, salt: u8) -> Bytes {
    (0..len).map(|i| u8::try_from(i % 251).unwrap() ^ salt).collect()
}

fn locations(stored: &Stored) -> Vec<Location> {
    match stored.content() {
        NewContent::Inline(_) | NewContent::Encrypted(..) | NewContent::Authenticated(..) => {
            Vec::new()
        }
        NewContent::Stored(locations) | NewContent::Shared(locations) => locations,
    }
}

async fn read(rig: &Rig, stored: &Stored) -> Vec<u8> {
    let mut all = Vec::new();
    for location in locations(stored) {
        for piece in rig.node.read(&location, 0..location.len.get()).await.unwrap() {
            all.extend_from_slice(&piece);
        }
    }
    all
}

pub(in crate::frontend) async fn stream(rig: &Rig, body: &Bytes, step: usize) -> Stored {
    let mut writer = rig.pool.stream(ACCOUNT);
    for piece in body.chunks(step) {
        writer.push(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    writer.finish().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn small_body_stays_in_memory_for_its_row() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let body = bytes(4096, 0);
    let stored = rig.pool.store(vec![body.clone()], 4096).await.unwrap();
    assert_eq!(stored.content(), NewContent::Inline(body));
}

#[tokio::test(start_paused = true)]
async fn bodies_that_wait_together_come_back_apart() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let bodies: Vec<Bytes> = (0..20).map(|i| bytes(5000 + usize::from(i), i)).collect();
    let all = bodies.iter().map(|b| rig.pool.store(vec![b.clone()], b.len() as u64));
    let stored = futures_util::future::join_all(all).await;
    for (stored, body) in stored.into_iter().zip(&bodies) {
        assert_eq!(read(&rig, &stored.unwrap()).await, body.as_ref());
    }
}

#[tokio::test(start_paused = true)]
async fn large_body_alone_in_its_lane_is_one_location() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let frame = usize::try_from(FRAME_PAYLOAD_MAX).unwrap();
    let body = bytes(3 * frame + 12345, 7);
    let stored = stream(&rig, &body, 60_000).await;
    assert_eq!(locations(&stored).len(), 1);
    assert_eq!(read(&rig, &stored).await, body.as_ref());
}

#[tokio::test(start_paused = true)]
async fn large_bodies_share_a_lane_without_mixing() {
    let rig = rig(64 << 20, WriteConfig { lanes: 1, ..WriteConfig::default() }).await;
    let (one, two) = (bytes(2_500_000, 1), bytes(2_400_000, 2));
    let (first, second) = tokio::join!(stream(&rig, &one, 100_000), stream(&rig, &two, 70_000));
    assert_eq!(read(&rig, &first).await, one.as_ref());
    assert_eq!(read(&rig, &second).await, two.as_ref());
}

#[tokio::test(start_paused = true)]
async fn full_extent_is_left_for_a_new_one() {
    let config = WriteConfig { extent_bytes_max: 1 << 20, ..WriteConfig::default() };
    let rig = rig(64 << 20, config).await;
    let body = bytes(3_000_000, 3);
    let stored = stream(&rig, &body, 50_000).await;
    assert!(locations(&stored).len() > 1);
    assert_eq!(read(&rig, &stored).await, body.as_ref());
}

#[tokio::test(start_paused = true)]
async fn dropped_bytes_are_freed_and_committed_ones_are_not() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let body = bytes(100_000, 4);
    let kept = rig.pool.store(vec![body.clone()], 100_000).await.unwrap();
    let dropped = rig.pool.store(vec![body.clone()], 100_000).await.unwrap();
    let (kept_at, dropped_at) = (locations(&kept)[0], locations(&dropped)[0]);
    let requests = LocalRequests::shared(rig.inflight.clone(), Arc::clone(&rig.env.clock));
    let written = async || requests.written_extents().await.unwrap();
    assert!(written().await.contains(&kept_at.extent));
    drop(kept.committing());
    drop(dropped);
    let refused = rig.pool.store(vec![body.clone()], 100_000).await.unwrap();
    let refused_at = locations(&refused)[0];
    refused.committing().refused();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!written().await.contains(&kept_at.extent));
    assert!(rig.node.read(&kept_at, 0..kept_at.len.get()).await.is_ok());
    assert!(rig.node.read(&dropped_at, 0..dropped_at.len.get()).await.is_err());
    assert!(rig.node.read(&refused_at, 0..refused_at.len.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn body_beyond_the_memory_of_all_is_refused_as_busy() {
    let rig =
        rig(64 << 20, WriteConfig { body_bytes_max: 1 << 20, ..WriteConfig::default() }).await;
    let (budget, body) = (rig.pool.budget(), BodyMemory::of(ACCOUNT));
    let held = budget.take(&body, 900_000).unwrap();
    let refused = budget.take(&body, 200_000).unwrap_err();
    assert_eq!(refused.reason, Reason::ServerBusy);
    drop(held);
    budget.take(&body, 200_000).unwrap();
}

#[tokio::test(start_paused = true)]
async fn full_disk_refuses_and_takes_writes_again_once_there_is_space() {
    let rig = rig(4 << 20, WriteConfig::default()).await;
    let body = bytes(500_000, 5);
    let mut kept = Vec::new();
    let refused = loop {
        match rig.pool.store(vec![body.clone()], 500_000).await {
            Ok(stored) => kept.push(stored),
            Err(error) => break error,
        }
        assert!(kept.len() < 20, "a disk of 4 MiB never filled");
    };
    assert_eq!(refused.reason, Reason::InsufficientStorage);
    for stored in &kept {
        assert_eq!(read(&rig, stored).await, body.as_ref());
    }
    rig.disk.set_capacity(64 << 20);
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.pool.store(vec![body.clone()], 500_000).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_that_leaves_in_the_middle_of_an_append_leaves_nothing_behind() {
    let rig = rig(64 << 20, WriteConfig { lanes: 1, ..WriteConfig::default() }).await;
    let mut cut = 0;
    for n in 0..40 {
        let mut stream = rig.pool.stream(ACCOUNT);
        let push = stream.push(bytes(1 << 20, 3));
        // The first one opens the extent.
        let patience = Duration::from_millis(if n == 0 { 1_000 } else { n % 3 });
        cut += u64::from(tokio::time::timeout(patience, push).await.is_err());
        drop(stream);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(cut >= 10, "only {cut} appends were cut");
    let extents = rig.node.extents().await;
    assert_eq!(extents.len(), 1, "the writer goes on where it was");
    assert_eq!((extents[0].freed, extents[0].len > 0), (extents[0].len, true));
}

#[tokio::test(start_paused = true)]
async fn accounts_share_the_memory_for_bodies() {
    const PIECE: usize = (64 << 10) - PIECE_BYTES;
    let rig =
        rig(64 << 20, WriteConfig { body_bytes_max: 1 << 20, ..WriteConfig::default() }).await;
    let (budget, now) = (rig.pool.budget(), || rig.env.clock.monotonic());
    let (body, other) = (BodyMemory::of(ACCOUNT), BodyMemory::of(AccountId::new(2)));
    let held: Vec<_> = (0..64).map_while(|_| budget.take(&body, PIECE).ok()).collect();
    assert_eq!(held.len(), 16);
    assert!(!budget.is_short(now()), "who was refused is alone");
    drop(held);
    drop(budget.take(&other, 1).unwrap());
    let held: Vec<_> = (0..64).map_while(|_| budget.take(&body, PIECE).ok()).collect();
    assert_eq!(held.len(), 12, "a quarter is left");
    assert!(!budget.is_short(now()), "who has more than its share does not count");
    let others: Vec<_> = (0..64).map_while(|_| budget.take(&other, PIECE).ok()).collect();
    assert_eq!(others.len(), 4);
    assert!(budget.is_short(now()));
    assert!(budget.above_share(now()).contains(&ACCOUNT));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!budget.is_short(now()), "nobody asks any more");
}

#[tokio::test(start_paused = true)]
async fn body_that_waits_too_long_for_its_append_is_refused_and_stored_nowhere() {
    let queue_patience = WriteConfig::default().queue_wait_max;
    let rig = rig(64 << 20, WriteConfig { queue_patience, ..WriteConfig::default() }).await;
    let (limit, clock) = (WriteConfig::default().queue_wait_max, SimClock::new());
    let store = |len: usize, after: Duration| {
        let (pool, body, clock) = (&rig.pool, bytes(len, 1), &clock);
        async move {
            tokio::time::sleep(after).await;
            let begun = clock.monotonic();
            let stored = pool.store(vec![body], len as u64).await;
            (stored.map_err(|error| error.reason), clock.monotonic() - begun)
        }
    };
    drop(store(5_000, Duration::ZERO).await.0.unwrap());
    let stored = async || rig.node.extents().await.iter().map(|extent| extent.len).sum::<u64>();
    let one = stored().await;
    rig.disk.stall(limit * 4);
    let (began, queued, late) = tokio::join!(
        store(5_000, Duration::ZERO),
        store(6_000, Duration::from_millis(1)),
        store(7_000, limit / 2),
    );
    assert!(began.0.is_ok(), "its append had begun");
    assert_eq!((queued.0.unwrap_err(), queued.1), (Reason::ServerBusy, limit));
    assert_eq!((late.0.unwrap_err(), late.1), (Reason::ServerBusy, limit));
    assert_eq!(stored().await, 2 * one, "the two of 5,000 bytes");
}

/// What becomes of bodies while appends take as long as `stall`: those that come at these times,
/// each with how long it waited.
async fn wait_for_a_slow_disk(
    stall: Duration,
    arrivals: impl IntoIterator<Item = Duration>,
) -> Vec<(Result<(), Reason>, Duration)> {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let clock = SimClock::new();
    let store = |after: Duration| {
        let (pool, body, clock) = (&rig.pool, bytes(5_000, 1), &clock);
        async move {
            tokio::time::sleep(after).await;
            let begun = clock.monotonic();
            let stored = pool.store(vec![body], 5_000).await;
            (stored.map(drop).map_err(|error| error.reason), clock.monotonic() - begun)
        }
    };
    // An extent that is open, so that one append is all a body needs.
    store(Duration::ZERO).await.0.unwrap();
    rig.disk.stall(stall);
    futures_util::future::join_all(arrivals.into_iter().map(store)).await
}

/// A slow disk is not overload: three clients wait for it.
#[tokio::test(start_paused = true)]
async fn few_bodies_wait_for_a_slow_disk() {
    let arrivals = [0, 1, 5_000].map(Duration::from_millis);
    let done = wait_for_a_slow_disk(Duration::from_secs(14), arrivals).await;
    assert!(done.iter().all(|(outcome, _)| outcome.is_ok()), "{done:?}");
}

/// As few as they are, they do not wait for ever.
#[tokio::test(start_paused = true)]
async fn few_bodies_wait_for_fifteen_seconds() {
    let arrivals = [0, 1, 5_000].map(Duration::from_millis);
    let done = wait_for_a_slow_disk(Duration::from_secs(60), arrivals).await;
    assert!(done[0].0.is_ok(), "its append had begun");
    assert_eq!(done[1..], [(Err(Reason::ServerBusy), Duration::from_secs(15)); 2]);
}

/// A queue that is long is refused fast, however patient those in front are.
#[tokio::test(start_paused = true)]
async fn long_queue_of_bodies_is_refused_fast() {
    let few = QUEUE_BODIES_MAX / 8;
    let limit = WriteConfig::default().queue_wait_max;
    let crowd = std::iter::repeat_n(Duration::from_millis(1), 2 * few);
    let arrivals = std::iter::once(Duration::ZERO).chain(crowd).chain([limit / 2]);
    let done = wait_for_a_slow_disk(Duration::from_secs(60), arrivals).await;
    assert!(done[0].0.is_ok(), "its append had begun");
    let busy = |waited| (Err(Reason::ServerBusy), waited);
    let (crowd, late) = (&done[1..=2 * few], &done[2 * few + 1]);
    let count = |waited| crowd.iter().filter(|done| **done == busy(waited)).count();
    assert_eq!(count(Duration::from_secs(15)), few);
    assert_eq!(count(limit), few, "they came when many were there");
    assert_eq!(*late, busy(Duration::ZERO), "it would have waited in vain");
}

/// There is room for the bytes, on another disk, and none for the id of their extent.
#[tokio::test(start_paused = true)]
async fn full_disk_of_the_coordinator_is_reported_as_such_and_writes_go_on_after_it() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let body = bytes(100_000, 1);
    let store = || rig.pool.store(vec![body.clone()], body.len() as u64);
    for _ in 0..2 {
        rig.coordinator.inject(Fault::Full);
    }
    for _ in 0..2 {
        let code = store().await.map(|_| "stored").map_err(|error| error.reason);
        assert_eq!(code, Err(Reason::InsufficientStorage));
    }
    assert_eq!(read(&rig, &store().await.unwrap()).await, body.as_ref());
}

#[tokio::test(start_paused = true)]
async fn shared_writer_that_panicked_answers_and_goes_on() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    rig.coordinator.inject(Fault::Panic);
    let bodies: Vec<Bytes> = (0..10).map(|i| bytes(5000 + usize::from(i), i)).collect();
    let store = |b: &Bytes| rig.pool.store(vec![b.clone()], b.len() as u64);
    let patience = Duration::from_secs(60);
    let all = futures_util::future::join_all(bodies.iter().map(store));
    let failed = tokio::time::timeout(patience, all).await.expect("a body waits for ever");
    let codes: Vec<_> = failed.into_iter().filter_map(Result::err).map(|e| e.reason).collect();
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == Reason::InternalError));
    let health = rig.env.tasks.health();
    assert_eq!((health.panics("shared data writer"), health.stopped()), (1, Vec::new()));
    tokio::time::sleep(patience).await;
    for body in &bodies {
        assert_eq!(read(&rig, &store(body).await.unwrap()).await, body.as_ref());
    }
}
