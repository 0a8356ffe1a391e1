use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::coordinator::Fault;
use crate::coordinator::Faults;
use crate::coordinator::SimulatedStore;
use crate::coordinator::conformance;
use crate::coordinator::conformance::ManualClock;
use crate::coordinator::conformance::commit;

#[tokio::test]
async fn ids_start_at_one_and_follow_each_other() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    assert_eq!(allocate(&store, EXTENT_IDS, 1).await.unwrap(), 1..2);
    assert_eq!(allocate(&store, EXTENT_IDS, 10).await.unwrap(), 2..12);
    assert_eq!(allocate(&store, PARTITION_IDS, 1).await.unwrap(), 1..2);
}

#[tokio::test]
async fn ids_may_be_skipped_but_never_reused() {
    let durable = SimulatedStore::new();
    let store = durable.open(&conformance::env(&ManualClock::new(), 1));
    durable.inject(Fault::AmbiguousApplied);
    assert_eq!(allocate(&store, EXTENT_IDS, 4).await.unwrap(), 5..9);
    durable.inject(Fault::AmbiguousLost);
    assert_eq!(allocate(&store, EXTENT_IDS, 4).await.unwrap(), 9..13);
    durable.inject(Fault::Unavailable);
    assert!(matches!(allocate(&store, EXTENT_IDS, 4).await, Err(Error::Unavailable { .. })));
    assert_eq!(allocate(&store, EXTENT_IDS, 4).await.unwrap(), 13..17);
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
                IdAllocator::new(Arc::clone(&store) as Arc<dyn Coordinator>, EXTENT_IDS),
                IdAllocator::new(store, EXTENT_IDS),
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
async fn damaged_or_exhausted_counter_is_refused() {
    let store = SimulatedStore::new().open(&conformance::env(&ManualClock::new(), 1));
    let key = Bytes::from_static(EXTENT_IDS);
    commit(&store, &[], &[Op::Put(key.clone(), Bytes::from_static(b"123"))]).await;
    assert!(matches!(allocate(&store, EXTENT_IDS, 1).await, Err(Error::Corrupt { .. })));
    commit(&store, &[], &[Op::Put(key, Bytes::from_static(&[0xff; 8]))]).await;
    assert!(matches!(allocate(&store, EXTENT_IDS, 1).await, Err(Error::Unavailable { .. })));
}
