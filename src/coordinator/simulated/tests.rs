use super::*;
use crate::coordinator::conformance;
use crate::coordinator::conformance::ManualClock;
use crate::coordinator::conformance::commit;
use crate::coordinator::conformance::key;
use crate::coordinator::conformance::put;
use crate::coordinator::conformance::value;

fn store() -> (SimulatedStore, SimulatedCoordinator, Arc<ManualClock>) {
    let clock = ManualClock::new();
    let store = SimulatedStore::new();
    let coordinator = store.open(&conformance::env(&clock, 7));
    (store, coordinator, clock)
}

#[tokio::test]
async fn simulated_passes_the_suite() {
    let (_, coordinator, clock) = store();
    conformance::suite(Arc::new(coordinator), clock.as_ref()).await;
}

#[tokio::test]
async fn injected_faults_do_what_they_say() {
    let (store, coordinator, _) = store();
    store.inject(Fault::Unavailable);
    store.inject(Fault::AmbiguousLost);
    store.inject(Fault::AmbiguousApplied);
    let reply = coordinator.txn(&[], &[put("a", "1")]).await;
    assert!(matches!(reply, Err(Error::Unavailable { .. })), "{reply:?}");
    assert_eq!(value(&coordinator, "a").await, None);
    let reply = coordinator.txn(&[], &[put("a", "2")]).await;
    assert!(matches!(reply, Err(Error::Ambiguous)), "{reply:?}");
    assert_eq!(value(&coordinator, "a").await, None);
    let reply = coordinator.txn(&[], &[put("a", "3")]).await;
    assert!(matches!(reply, Err(Error::Ambiguous)), "{reply:?}");
    assert_eq!(value(&coordinator, "a").await, Some(key("3")));
    commit(&coordinator, &[], &[put("a", "4")]).await;
}

#[tokio::test]
async fn crash_cuts_off_and_loses_nothing_acknowledged() {
    let (store, before, clock) = store();
    let session = before.open_session(Duration::from_secs(9)).await.unwrap();
    let at = commit(&before, &[], &[put("a", "1")]).await;
    commit(&before, &[], &[Op::PutWithSession(key("s"), key("1"), session)]).await;
    store.crash();
    assert!(matches!(before.get(b"a").await, Err(Error::Unavailable { .. })));
    let after = store.open(&conformance::env(&clock, 8));
    assert_eq!(after.get(b"a").await.unwrap().unwrap().mod_revision, at);
    assert_eq!(value(&after, "s").await, None, "sessions end with the process");
    assert!(matches!(before.txn(&[], &[put("a", "2")]).await, Err(Error::Unavailable { .. })));
}

#[tokio::test]
async fn crash_makes_a_travelling_transaction_ambiguous() {
    let (store, before, clock) = store();
    store.set_faults(Faults { delay_max: Duration::from_secs(1), ..Faults::default() });
    let travelling = {
        let before = before.clone();
        let tasks = before.env.tasks.clone();
        tasks.spawn("txn", async move { before.txn(&[], &[put("a", "1")]).await })
    };
    tokio::task::yield_now().await;
    store.crash();
    clock.advance(Duration::from_secs(2));
    tokio::task::yield_now().await;
    clock.advance(Duration::from_secs(2));
    let reply = travelling.await.unwrap();
    assert!(matches!(reply, Err(Error::Ambiguous)), "{reply:?}");
}

#[tokio::test]
async fn same_seed_gives_the_same_faults() {
    let mut traces = Vec::new();
    for _ in 0..2 {
        let (store, coordinator, _) = store();
        store.set_faults(Faults {
            unavailable_per_mille: 200,
            ambiguous_per_mille: 200,
            delay_max: Duration::ZERO,
        });
        let mut trace = Vec::new();
        for n in 0..200 {
            let reply = coordinator.txn(&[], &[put("a", &n.to_string())]).await;
            trace.push(format!("{reply:?}"));
        }
        assert!(trace.iter().any(|reply| reply.contains("Ambiguous")));
        assert!(trace.iter().any(|reply| reply.contains("Unavailable")));
        traces.push(trace);
    }
    assert_eq!(traces[0], traces[1]);
}
