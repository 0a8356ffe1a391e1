use std::sync::Arc;

use super::*;
use crate::coordinator::simulated::Fault;
use crate::coordinator::simulated::SimulatedCoordinator;
use crate::coordinator::simulated::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::types::ClusterNumber;

const RECORD: ClusterRecord =
    ClusterRecord { number: ClusterNumber::new(7), id: 300, generation: 1, copies: 3 };
const OTHER: ClusterRecord = ClusterRecord { id: 301, ..RECORD };

fn opened() -> (SimulatedStore, SimulatedCoordinator) {
    let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
    let store = SimulatedStore::new();
    let coordinator = store.open(&Env { clock, rand, tasks: Tasks::new() });
    (store, coordinator)
}

fn put(key: &str) -> Op {
    Op::Put(Bytes::copy_from_slice(key.as_bytes()), Bytes::from_static(b"value"))
}

async fn begun(coordinator: &SimulatedCoordinator, record: ClusterRecord) -> Adoption<'_> {
    Adoption::begin(coordinator, record).await.unwrap().expect("not made yet")
}

async fn keys(coordinator: &SimulatedCoordinator) -> Vec<String> {
    let all = coordinator.range(b"").await.unwrap().entries;
    all.into_iter().map(|(key, _)| key.escape_ascii().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn cluster_is_made_with_the_last_transaction_and_mark_has_golden_bytes() {
    let (_store, coordinator) = opened();
    let adoption = begun(&coordinator, RECORD).await;
    let mark = coordinator.get(ADOPTING_KEY).await.unwrap().unwrap().value;
    assert_eq!(mark.as_ref(), [1, 7, 0xAC, 0x02]);
    adoption.copy(&[put("partition/1"), put("group/1")]).await.unwrap();
    let none = ClusterRecord::read(&coordinator).await;
    assert!(matches!(none, Err(ClusterError::NotMade)), "{none:?}");
    adoption.finish(&[put("node/key-ring")]).await.unwrap();
    assert_eq!(ClusterRecord::read(&coordinator).await.unwrap(), RECORD);
    let expected = ["cluster/record", "group/1", "node/key-ring", "partition/1"];
    assert_eq!(keys(&coordinator).await, expected);
    assert!(Adoption::begin(&coordinator, RECORD).await.unwrap().is_none());
    assert_eq!(Adoption::find(&coordinator, &RECORD).await.unwrap(), Found::Live);
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_made_meanwhile() {
    let (_store, coordinator) = opened();
    let adoption = begun(&coordinator, RECORD).await;
    let other = Adoption::begin(&coordinator, OTHER).await;
    assert!(matches!(other, Err(ClusterError::Adopting)), "{other:?}");
    let made = OTHER.make(&coordinator).await;
    assert!(matches!(made, Err(ClusterError::Adopting)), "{made:?}");
    let late = begun(&coordinator, RECORD).await;
    adoption.finish(&[]).await.unwrap();
    let other = Adoption::begin(&coordinator, OTHER).await;
    assert!(matches!(other, Err(ClusterError::Made { .. })), "{other:?}");
    let undone = late.undo(|_| true).await;
    assert!(matches!(undone, Err(ClusterError::Made { .. })), "{undone:?}");
    assert_eq!(ClusterRecord::read(&coordinator).await.unwrap(), RECORD);
}

#[tokio::test(start_paused = true)]
async fn coordinator_with_other_keys_is_refused() {
    let (_store, coordinator) = opened();
    coordinator.txn(&[], &[put("node/key-ring")]).await.unwrap();
    let refused = Adoption::begin(&coordinator, RECORD).await;
    assert!(matches!(refused, Err(ClusterError::NotEmpty { .. })), "{refused:?}");
    assert_eq!(keys(&coordinator).await, ["node/key-ring"]);
}

#[tokio::test(start_paused = true)]
async fn adoption_that_was_undone_copies_and_finishes_nothing() {
    let (_store, coordinator) = opened();
    let late = begun(&coordinator, RECORD).await;
    late.copy(&[put("partition/1")]).await.unwrap();
    // Of somebody who heeds no rule.
    coordinator.txn(&[], &[put("longer-prefix/record")]).await.unwrap();
    let undoing = begun(&coordinator, RECORD).await;
    undoing.undo(|key| key.starts_with(b"partition/")).await.unwrap();
    assert_eq!(keys(&coordinator).await, ["longer-prefix/record"]);
    coordinator.txn(&[], &[Op::Delete(Bytes::from_static(b"longer-prefix/record"))]).await.unwrap();
    let copied = late.copy(&[put("partition/2")]).await;
    assert!(matches!(copied, Err(ClusterError::Adopting)), "{copied:?}");
    let finished = late.finish(&[]).await;
    assert!(matches!(finished, Err(ClusterError::Adopting)), "{finished:?}");
    assert_eq!(keys(&coordinator).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn lost_answers_change_nothing() {
    let faults = [Fault::AmbiguousApplied, Fault::AmbiguousLost];
    for (at, fault) in (0..3).flat_map(|at| faults.map(|fault| (at, fault))) {
        let (store, coordinator) = opened();
        store.inject_after(at, fault);
        let adoption = begun(&coordinator, RECORD).await;
        adoption.copy(&[put("partition/1")]).await.unwrap();
        adoption.finish(&[]).await.unwrap();
        let made = ["cluster/record", "partition/1"];
        assert_eq!(keys(&coordinator).await, made, "{at} {fault:?}");
    }
    for (at, fault) in (0..2).flat_map(|at| faults.map(|fault| (at, fault))) {
        let (store, coordinator) = opened();
        let adoption = begun(&coordinator, RECORD).await;
        adoption.copy(&[put("partition/1")]).await.unwrap();
        store.inject_after(at, fault);
        let undone = adoption.undo(|_| true).await;
        assert!(undone.is_ok(), "{at} {fault:?}: {undone:?}");
        assert_eq!(keys(&coordinator).await, [""; 0], "{at} {fault:?}");
    }
}
