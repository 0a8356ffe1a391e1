use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::coordinator::Fault;
use crate::coordinator::Faults;
use crate::coordinator::SimulatedStore;
use crate::coordinator::conformance;
use crate::coordinator::conformance::ManualClock;
use crate::coordinator::conformance::commit;

const ALONE: ClusterNumber = ClusterNumber::ALONE;

#[tokio::test]
async fn ids_start_at_one_and_follow_each_other() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    assert_eq!(allocate(&store, ALONE, EXTENT_IDS, 1).await.unwrap(), 1..2);
    assert_eq!(allocate(&store, ALONE, EXTENT_IDS, 10).await.unwrap(), 2..12);
    assert_eq!(allocate(&store, ALONE, PARTITION_IDS, 1).await.unwrap(), 1..2);
}

#[tokio::test]
async fn ids_may_be_skipped_but_never_reused() {
    let durable = SimulatedStore::new();
    let store = durable.open(&conformance::env(&ManualClock::new(), 1));
    durable.inject(Fault::AmbiguousApplied);
    assert_eq!(allocate(&store, ALONE, EXTENT_IDS, 4).await.unwrap(), 5..9);
    durable.inject(Fault::AmbiguousLost);
    assert_eq!(allocate(&store, ALONE, EXTENT_IDS, 4).await.unwrap(), 9..13);
    durable.inject(Fault::Unavailable);
    assert!(matches!(allocate(&store, ALONE, EXTENT_IDS, 4).await, Err(Error::Unavailable { .. })));
    assert_eq!(allocate(&store, ALONE, EXTENT_IDS, 4).await.unwrap(), 13..17);
}

#[tokio::test]
async fn ids_are_unique_over_faults_restarts_and_rivals() {
    for seed in 0..50 {
        let durable = SimulatedStore::new();
        let clock = ManualClock::new();
        let mut issued = BTreeSet::new();
        for restart in 0..4 {
            let store = Arc::new(durable.open(&conformance::env(&clock, seed * 10 + restart)));
            durable.set_faults(Faults {
                unavailable_per_mille: 100,
                ambiguous_per_mille: 300,
                delay_max: Duration::ZERO,
            });
            let rivals = [
                IdAllocator::new(Arc::clone(&store) as Arc<dyn Coordinator>, ALONE, EXTENT_IDS),
                IdAllocator::new(store, ALONE, EXTENT_IDS),
            ];
            for round in 0..150 {
                if let Ok(id) = rivals[round % 2].next().await {
                    assert!(issued.insert(id), "seed {seed}: {id} twice");
                }
            }
        }
        assert!(issued.len() > 100, "seed {seed}: only {}", issued.len());
    }
}

#[tokio::test]
async fn ids_of_a_cluster_begin_at_its_number() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    let cluster = ClusterNumber::new(0xAB);
    let first = 0xAB << 48;
    assert_eq!(allocate(&store, cluster, EXTENT_IDS, 2).await.unwrap(), first..first + 2);
    assert_eq!(allocate(&store, cluster, EXTENT_IDS, 1).await.unwrap(), first + 2..first + 3);
    let nodes = IdAllocator::new(Arc::new(store), cluster, NODE_IDS);
    assert_eq!(nodes.next().await.unwrap(), first);
}

/// Puts a counter where the next id is this one.
async fn set(store: &dyn Coordinator, next: u64) {
    let next = Bytes::copy_from_slice(&next.to_be_bytes());
    commit(store, &[], &[Op::Put(Bytes::from_static(EXTENT_IDS), next)]).await;
}

#[tokio::test]
async fn ids_of_a_cluster_never_run_into_those_of_the_next() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    for number in [0, 7, u16::MAX] {
        let cluster = ClusterNumber::new(number);
        let end = cluster.ids().end;
        set(&store, end - 3).await;
        let too_many = allocate(&store, cluster, EXTENT_IDS, 4).await;
        assert!(matches!(too_many, Err(Error::Unavailable { .. })), "{too_many:?}");
        assert_eq!(allocate(&store, cluster, EXTENT_IDS, 3).await.unwrap(), end - 3..end);
        for _ in 0..2 {
            let none = allocate(&store, cluster, EXTENT_IDS, 1).await;
            assert!(matches!(none, Err(Error::Unavailable { .. })), "{none:?}");
        }
    }
}

#[tokio::test]
async fn counter_of_another_cluster_is_refused() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    let ids = ClusterNumber::new(7).ids();
    for next in [1, ids.start - 1, ids.end + 1, u64::MAX] {
        set(&store, next).await;
        let refused = allocate(&store, ClusterNumber::new(7), EXTENT_IDS, 1).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{next:x}: {refused:?}");
    }
    set(&store, 0).await;
    let zero = allocate(&store, ALONE, EXTENT_IDS, 1).await;
    assert!(matches!(zero, Err(Error::Corrupt { .. })), "0 is reserved: {zero:?}");
}

#[tokio::test]
async fn ids_are_taken_from_a_multiple_on() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    for (next, first) in [(1, 64), (64, 64), (65, 128), (127, 128)] {
        set(&store, next).await;
        let counter = CounterAt::read(&store, ALONE, EXTENT_IDS).await.unwrap();
        let Taken { ids, when, then } = counter.take(64, 64).unwrap();
        assert_eq!(ids, first..first + 64, "from {next}");
        commit(&store, &[when], &[then]).await;
        let then = allocate(&store, ALONE, EXTENT_IDS, 1).await.unwrap();
        assert_eq!(then, first + 64..first + 65);
    }
    let end = ALONE.ids().end;
    set(&store, end - 64).await;
    let counter = CounterAt::read(&store, ALONE, EXTENT_IDS).await.unwrap();
    let refused = counter.take(64, 64).map(|taken| taken.ids);
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
}

#[tokio::test]
async fn damaged_counter_is_refused() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    let put = Op::Put(Bytes::from_static(EXTENT_IDS), Bytes::from_static(b"123"));
    commit(&store, &[], &[put]).await;
    assert!(matches!(allocate(&store, ALONE, EXTENT_IDS, 1).await, Err(Error::Corrupt { .. })));
}
