use super::*;
use crate::capacity;
use crate::coordinator;
use crate::index::api::Full;
use crate::index::engine::testing::{Fault, When, World, put};
use crate::index::server::IndexServer;
use crate::telemetry::CapturedLog;

/// Longer than all tries after which writes are refused, and than a pause between tries.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn writes_get_the_latest_reason_and_the_partition_stops_once() {
    let log = CapturedLog::default();
    let _lines = log.begin();
    let mut world = World::empty();
    world.config.log_extent_bytes = 2_000;
    let server = IndexServer::open(vec![world.deps()], world.config).await.unwrap();
    let partition = server.hosts.first().unwrap().opened.all().remove(0);
    partition.apply(put("a", "1")).await.unwrap();
    world.store.inject(coordinator::Fault::LostThenFull);
    while partition.core.may_write_log() {
        drop(partition.apply(put("a", &"1".repeat(500))).await);
    }
    let clock = Arc::clone(&server.deps().unwrap().env.clock);
    clock.sleep(LONG).await;
    let first = partition.core.status();
    assert!(matches!(first, Status::ReadOnly(Error::Full(Full::Coordinator(_)))), "{first:?}");
    let stops = log.lines_with(&["partition stops"]);

    let full = Fault::Refused(capacity::Error::Full);
    world.capacity.fail(When::From(0), full.clone());
    world.store.set_full(false);
    clock.sleep(LONG).await;
    let second = partition.core.status();
    assert_eq!(second, Status::ReadOnly(Error::Full(Full::Disks)));
    assert_eq!(log.lines_with(&["partition stops"]), stops, "{}", log.text());

    world.capacity.fail(When::Once(usize::MAX), full);
    clock.sleep(LONG).await;
    assert_eq!(partition.core.status(), Status::Lost);
    server.shutdown().await;
}
