//! Assertions of invariants that fire: the step frees nothing and logs an error.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::index::GarbageRow;
use crate::reclaim::Error;
use crate::reclaim::Invariant;
use crate::reclaim::audit::check_complete;
use crate::reclaim::cursor::Place;
use crate::reclaim::garbage::free_rows;
use crate::reclaim::live::Found;
use crate::telemetry::CapturedLog;
use crate::types::*;

/// A partition that takes an extent for a log after the extents were listed as data.
#[tokio::test(start_paused = true)]
async fn audit_that_would_free_a_log_is_stopped_by_i10() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    let index = bench.index.clone();
    *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |_| {
        *index.owned.lock().unwrap() = vec![ExtentId::new(1)];
    }));
    let log = CapturedLog::default();
    let _kept = log.begin();
    bench.env.tasks.health().expect_violation("I10");
    let refused = bench.reclaim().audit().await.unwrap_err();
    assert_eq!(bench.env.tasks.health().violations().len(), 1);
    let expected = Invariant::NothingReferencedIsFreed;
    assert!(matches!(refused, Error::Invariant { invariant, .. } if invariant == expected));
    assert_eq!(bench.capacity.live(1).len(), 20);
    assert_eq!(bench.metrics.audits_failed.get(), 1);
    assert_eq!(log.lines_with(&["ERROR", "audit", "I10"]), 1, "{}", log.text());
    // The next one knows the log, and does not touch it.
    *bench.index.between_pages.lock().unwrap() = None;
    bench.reclaim().audit().await.unwrap();
    assert_eq!(bench.capacity.live(1).len(), 20);
}

#[test]
fn audit_that_would_pass_an_extent_is_stopped_by_i11() {
    let ids =
        |ids: &[u64]| -> BTreeSet<ExtentId> { ids.iter().copied().map(ExtentId::new).collect() };
    let found = |extents: &[u64], next| Found {
        extents: ids(extents).into_iter().map(|id| (id, Vec::new())).collect::<BTreeMap<_, _>>(),
        next,
    };
    let place = |extent, offset| Some(Place { extent: ExtentId::new(extent), offset });
    let candidates = ids(&[1, 2, 5]);
    for (extents, next) in [(&[1, 2, 5][..], None), (&[1, 2], place(5, 0)), (&[1, 2], place(2, 9))]
    {
        check_complete(&candidates, &found(extents, next)).unwrap();
    }
    for (extents, next) in
        [(&[1, 5][..], None), (&[1, 2], None), (&[1, 2], place(5, 1)), (&[2], place(2, 9))]
    {
        let refused = check_complete(&candidates, &found(extents, next)).unwrap_err().to_string();
        assert!(refused.starts_with("invariant I11 does not hold: "), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_row_of_a_page_layer_with_locations_is_refused_by_i10() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    let row = GarbageRow {
        key: bytes::Bytes::from_static(b"row"),
        since: Timestamp::ZERO,
        locations: vec![location(1, 0, 9)],
        layer: Some(RoutingKey::min()),
    };
    let map = crate::reclaim::Partitions::map(bench.index.as_ref()).await.unwrap();
    let target = crate::index::Target::of(&map.partitions()[0]);
    let refused = free_rows(&bench.reclaim(), target, vec![row]).await.unwrap_err().to_string();
    assert!(refused.starts_with("invariant I10 does not hold: "), "{refused}");
    assert_eq!(bench.capacity.live(1).len(), 20);
}
