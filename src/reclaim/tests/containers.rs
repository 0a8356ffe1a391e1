//! Purges of deleted containers, and when one is forgotten.

use std::time::Duration;

use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::index::api::*;
use crate::reclaim::Reclaim;
use crate::reclaim::service::PassState;
use crate::types::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn container() -> ContainerName {
    ContainerName::new("abc").unwrap()
}

pub(super) fn make_and_delete_container(bench: &Bench) {
    bench.index.must(&Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: container(),
        id: CONTAINER,
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }));
    for n in 0..300 {
        let name = format!("{}{n}", if n % 2 == 0 { "a" } else { "p" });
        bench.index.must(&put(&name, &[location(1, n * 10, 9)]));
    }
    let guard = Guard::default();
    let delete = DeleteContainer {
        account: ACCOUNT,
        name: container(),
        guard,
        closed: None,
        restorable_for: None,
    };
    bench.index.must(&Write::DeleteContainer(delete));
}

#[tokio::test(start_paused = true)]
async fn deleted_container_is_purged_twice_then_forgotten() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 4_000);
    make_and_delete_container(&bench);
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    assert!(reclaim.pass(&mut state).await);
    assert!(bench.metrics.purge_writes.get() > 3, "in steps");
    // A put that had passed its check for the container lands late.
    bench.index.must(&put("late", &[location(1, 3_900, 9)]));
    bench.after(SECOND * 3).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.index.rows(), 2, "the late blob and the memory of the container");
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.metrics.purged_containers.get(), 1);
    bench.after(SECOND * 3).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.index.rows(), 0);
    assert_eq!(bench.capacity.live(1).len(), 4_000 - 301 * 10);
}

#[tokio::test(start_paused = true)]
async fn deleted_container_is_remembered_until_slow_uploads_have_landed() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 4_000);
    make_and_delete_container(&bench);
    // Its first bytes are still to come, so it has written to no extent.
    let request = bench.inflight.change();
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    reclaim.pass(&mut state).await;
    let _later = bench.inflight.change();
    for _ in 0..3 {
        bench.after(HOUR * 2).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 0);
    // Its client leaves while the commit runs.
    let commit = bench.inflight.commit();
    drop(request);
    for _ in 0..3 {
        bench.after(HOUR).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 0, "the commit may add a row");
    bench.index.must(&put("late", &[location(1, 3_900, 9)]));
    drop(commit);
    for _ in 0..3 {
        bench.after(SECOND * 20).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 1);
    assert_eq!(bench.index.rows(), 0);
}

/// Its names lie in the last partition alone; another container's lie in all of them.
#[tokio::test(start_paused = true)]
async fn deleted_container_is_purged_although_a_partition_elsewhere_is_quarantined() {
    let bench = Bench::new();
    make_and_delete_container(&bench);
    let name = || ContainerName::new("other").unwrap();
    bench.index.must(&Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: name(),
        id: ContainerId::new(8),
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }));
    let guard = Guard::default();
    let delete = DeleteContainer {
        account: ACCOUNT,
        name: name(),
        guard,
        closed: None,
        restorable_for: None,
    };
    bench.index.must(&Write::DeleteContainer(delete));
    *bench.index.quarantined.lock().unwrap() = Some(1);
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    for _ in 0..4 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 1, "the other container is gone");
    assert!(bench.metrics.passed_over.get() > 0);
    *bench.index.quarantined.lock().unwrap() = None;
    for _ in 0..4 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 2);
    assert_eq!(bench.index.rows(), 0);
}

#[tokio::test(start_paused = true)]
async fn purge_goes_on_where_its_budget_ended() {
    let bench = Bench::new();
    make_and_delete_container(&bench);
    let mut setup = bench.setup();
    setup.config.blobs_per_write = 10;
    setup.config.writes_per_pass = 7;
    let reclaim = Reclaim::new(setup);
    let mut state = PassState::default();
    let mut passes = 0;
    while bench.metrics.purge_writes.get() < 32 {
        reclaim.pass(&mut state).await;
        passes += 1;
        assert!(passes < 20, "no progress");
    }
    bench.after(HOUR * 2).await;
    for _ in 0..5 {
        reclaim.pass(&mut state).await;
        bench.after(SECOND * 3).await;
    }
    assert_eq!(bench.index.rows(), 0);
}
