//! What becomes of the map under load.

use bytes::Bytes;

use super::*;
use crate::audit_log::testing::Kept;
use crate::index::Guard;
use crate::index::NewBlobFields;
use crate::index::NewContent;
use crate::index::PutBlob;
use crate::index::Read;
use crate::telemetry::Exposition;
use crate::telemetry::Registry;
use crate::telemetry::render;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::Revision;
use crate::types::Stripe;
use crate::types::Tags;

#[tokio::test(start_paused = true)]
async fn a_large_partition_is_split_by_itself_without_any_load() {
    let rig = open(&World::empty()).await;
    rig.write_all(0..1_000).await;
    rig.server.flush().await.unwrap();
    let manager = rig.manage(PolicyConfig { rows_max: 600, ..PolicyConfig::default() });
    rig.sleep(Duration::from_secs(200)).await;
    let status = rig.server.status();
    assert!((2..=4).contains(&status.len()), "{} partitions", status.len());
    manager.stop().await;
    let mut reports = rig.server.load_reports().unwrap();
    reports.take();
    for partition in &reports.latest().partitions {
        assert!(partition.rows <= 600, "{partition:?}");
    }
    rig.server.shutdown().await;
}

/// Writes `0..count` in random order, four thousand a second, until `done`. Returns the time that
/// this took.
async fn load_until(rig: &Rig, count: u64, done: impl Fn(&Rig) -> bool) -> Duration {
    let clock = &rig.deps.env.clock;
    let began = clock.monotonic();
    for number in 0..count {
        rig.write(account(number * 7_919 % count)).await;
        if number % 4 == 0 {
            clock.sleep(Duration::from_millis(1)).await;
        }
        if done(rig) {
            break;
        }
    }
    clock.monotonic() - began
}

#[tokio::test(start_paused = true)]
async fn a_burst_out_of_silence_is_spread_over_partitions_and_hosts_within_a_second() {
    // Wherever in a tick it begins.
    for phase in 0..5 {
        let rig = open(&World::empty()).await;
        let manager = rig.manage(PolicyConfig { hot_requests: 800.0, ..PolicyConfig::default() });
        rig.sleep(Duration::from_millis(60_000 + 50 * phase)).await;
        assert_eq!(rig.server.partitions(), 1);
        let split = load_until(&rig, 20_011, |rig| rig.server.partitions() >= 4).await;
        assert!(split < Duration::from_secs(1), "{split:?} in phase {phase}");
        let moved = load_until(&rig, 20_011, |rig| rig.busy_hosts().len() == 2).await;
        assert!(split + moved < Duration::from_secs(1), "{split:?} and {moved:?}");
        rig.stop(manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hot_partition_is_split_by_itself_and_loses_nothing() {
    let rig = open(&World::empty()).await;
    let kept = Kept::new();
    let config = PolicyConfig { hot_requests: 200.0, ..PolicyConfig::default() };
    let manager = Manager::start(rig.setup(Some(config), kept.log()));
    for number in 1..=2_000u64 {
        // In no order, a thousand a second.
        rig.write(account(number * 7 % 2_003)).await;
        rig.sleep(Duration::from_millis(1)).await;
    }
    assert!(rig.server.partitions() >= 4, "{} partitions", rig.server.partitions());
    rig.stop(manager).await;
    let logged = kept.changes();
    let mut partitions = 1;
    for line in &logged {
        assert_eq!(line["of"], "partition_map");
        assert_eq!(line["principal"]["task"], "index balancer");
        assert!(line["detail"]["outcome"].is_null(), "{line}");
        match line["operation"].as_str().unwrap() {
            "SplitPartition" => partitions += line["detail"]["ways"].as_u64().unwrap() - 1,
            "MergePartitions" => {
                partitions -= line["resource"].as_str().unwrap().matches(',').count() as u64;
            }
            other => assert_eq!(other, "MovePartition"),
        }
    }
    let there = rig.map().await.partitions().len() as u64;
    assert_eq!(partitions, there, "each change has its line: {logged:?}");
    for number in 1..=2_000u64 {
        assert!(rig.has(number * 7 % 2_003).await, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn manager_that_has_stopped_changes_nothing() {
    let rig = open(&World::empty()).await;
    let manager = rig.manage(PolicyConfig { hot_requests: 200.0, ..PolicyConfig::default() });
    rig.sleep(Duration::from_secs(2)).await;
    manager.stop().await;
    let hot = load_until(&rig, 4_001, |_| false).await;
    assert!(hot > Duration::from_millis(900));
    assert_eq!(rig.server.partitions(), 1);
    rig.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn manager_without_a_policy_measures_and_changes_nothing() {
    let rig = open(&World::empty()).await;
    let manager = Manager::start(rig.setup(None, AuditLog::default()));
    load_until(&rig, 4_001, |_| false).await;
    rig.sleep(TICK * 2).await;
    assert_eq!(rig.server.partitions(), 1);
    rig.stop(manager).await;
    let mut registry = Registry::default();
    rig.deps.metrics.register(&mut registry);
    let text = render(&registry, Exposition::OpenMetrics).unwrap();
    let counted = "requests_total{class=\"write\"} 4001";
    assert!(text.lines().any(|line| line.ends_with(counted)), "{text}");
}

const ACCOUNT: AccountId = AccountId::new(1);
const CONTAINER: ContainerId = ContainerId::new(1 << 62);

fn blob(number: u32) -> BlobKey {
    let name = BlobName::new(&format!("log/{number:06}")).unwrap();
    BlobKey { account: ACCOUNT, container: CONTAINER, collation: Collation::Utf16, name }
}

fn put(number: u32) -> Write {
    let content = Bytes::from(number.to_string());
    Write::PutBlob(PutBlob {
        key: blob(number),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        crc64: Crc64::of(&content),
        content: NewContent::Inline(content),
        tier: None,
        fields: NewBlobFields::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn names_that_grow_are_dealt_out_by_itself_and_none_is_lost() {
    // The container has a partition of its own.
    let range = RoutingKey::container_range(ACCOUNT, CONTAINER);
    let borders = [range.low().clone(), range.high().unwrap().clone()];
    let rig = open_with(&World::empty(), &borders).await;
    let manager = rig.manage(PolicyConfig { hot_requests: 200.0, ..PolicyConfig::default() });
    let stripes =
        || rig.server.status().into_iter().filter_map(|one| one.stripe).collect::<Vec<Stripe>>();
    // What was there before the load came is left alone for a second.
    rig.sleep(Duration::from_secs(2)).await;
    for number in 0..2_000 {
        // A thousand a second.
        if number == 1_000 {
            assert!(stripes().len() >= 4, "within a second");
        }
        rig.write(put(number)).await;
        rig.sleep(Duration::from_millis(1)).await;
    }
    let of_it = stripes();
    assert!(of_it.iter().all(|stripe| usize::from(stripe.of()) == of_it.len()), "{of_it:?}");
    assert_eq!(rig.busy_hosts().len(), 2, "both have some");
    rig.stop(manager).await;
    let map = rig.map().await;
    for number in 0..2_000 {
        let target = Target::of(map.owner(RoutingKey::blob(&blob(number)).as_bytes()).unwrap());
        let read = Read::BlockList(blob(number), Revision::Current, Guard::default());
        assert!(rig.server.read(target, read).await.is_ok(), "{number}");
    }
}
