use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::capacity::groups::GroupState;
use crate::coordinator::counter;
use crate::coordinator::{Fault, Faults, SimulatedCoordinator, SimulatedStore};
use crate::env::{Env, SeededRand, SimClock, Tasks};

const CLUSTER: ClusterNumber = ClusterNumber::new(0xAB);
const MEMBERS: [NodeId; 2] = [NodeId::new(1), NodeId::new(2)];

fn open(store: &SimulatedStore, seed: u64) -> Arc<SimulatedCoordinator> {
    let rand = Arc::new(SeededRand::new(seed));
    Arc::new(store.open(&Env { clock: Arc::new(SimClock::new()), rand, tasks: Tasks::new() }))
}

fn maker(coordinator: &Arc<SimulatedCoordinator>, writer: u64) -> GroupMaker {
    GroupMaker::new(Arc::clone(coordinator) as _, CLUSTER, Incarnation::new(writer))
}

/// The first extent's id without the number of the cluster.
fn first(at: &GroupAt) -> u64 {
    at.record.id().first().get() - CLUSTER.ids().start
}

async fn data(maker: &GroupMaker) -> GroupAt {
    maker.make(ExtentKind::Data, &MEMBERS).await.unwrap()
}

#[tokio::test]
async fn group_and_ids_are_made_by_one_transaction() {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 1);
    let maker = maker(&coordinator, 7);
    let made = maker.make(ExtentKind::Run, &MEMBERS).await.unwrap();
    assert_eq!((first(&made), made.record.kind()), (0, ExtentKind::Run));
    assert_eq!((made.record.members(), made.record.writer()), (&MEMBERS[..], maker.writer));
    assert_eq!(made.record.state(), GroupState::Open);
    assert_eq!(store::read(coordinator.as_ref(), made.record.id()).await.unwrap(), Some(made));
    assert_eq!(first(&data(&maker).await), 64);
    // The counter goes on behind the groups, and a group begins at the next multiple.
    let ids = counter::allocate(coordinator.as_ref(), CLUSTER, EXTENT_IDS, 3).await.unwrap();
    assert_eq!(ids.start, CLUSTER.ids().start + 128);
    assert_eq!(first(&data(&maker).await), 192);
}

#[tokio::test]
async fn groups_of_an_older_store_begin_behind_its_ids() {
    let coordinator = open(&SimulatedStore::new(), 1);
    let alone = ClusterNumber::ALONE;
    let ids = counter::allocate(coordinator.as_ref(), alone, EXTENT_IDS, 100).await.unwrap();
    assert_eq!(ids, 1..101);
    let maker = GroupMaker::new(Arc::clone(&coordinator) as _, alone, Incarnation::new(7));
    let made = maker.make(ExtentKind::Data, &MEMBERS).await.unwrap();
    assert_eq!(made.record.id().first().get(), 128);
}

#[tokio::test]
async fn group_of_an_unknown_outcome_is_the_next_one() {
    for (fault, expected) in [(Fault::AmbiguousApplied, 0), (Fault::AmbiguousLost, 0)] {
        let store = SimulatedStore::new();
        let coordinator = open(&store, 1);
        let maker = maker(&coordinator, 7);
        store.inject(fault);
        assert_eq!(first(&data(&maker).await), expected, "{fault:?}");
        assert_eq!(first(&data(&maker).await), expected + 64, "{fault:?}");
    }
}

#[tokio::test]
async fn group_is_found_again_after_a_call_that_failed() {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 1);
    let maker = maker(&coordinator, 7);
    store.inject(Fault::AppliedThenAway);
    let failed = maker.make(ExtentKind::Data, &MEMBERS).await;
    assert!(matches!(failed, Err(Error::Coordinator(_))), "{failed:?}");
    // Another writer, and another kind, do not get it.
    assert_eq!(first(&data(&self::maker(&coordinator, 8)).await), 64);
    let run = maker.make(ExtentKind::Run, &MEMBERS).await.unwrap();
    assert_eq!(first(&run), 128);
    assert_eq!(first(&maker.make(ExtentKind::Data, &MEMBERS[..1]).await.unwrap()), 0);
    assert_eq!(first(&data(&maker).await), 192);
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_loses_no_group() {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 3);
    let maker = maker(&coordinator, 7);
    store.set_faults(Faults { delay_max: Duration::from_millis(40), ..Faults::default() });
    let mut cancelled = 0;
    for millis in 0..120 {
        let make = maker.make(ExtentKind::Data, &MEMBERS);
        cancelled +=
            u32::from(tokio::time::timeout(Duration::from_millis(millis), make).await.is_err());
        // What was made, or would have been made, comes before any other group.
        store.set_faults(Faults::default());
        let next = data(&maker).await;
        let all = store::read_all(coordinator.as_ref()).await.unwrap().groups;
        assert_eq!(all.last_key_value().unwrap().0, &next.record.id());
        store.set_faults(Faults { delay_max: Duration::from_millis(40), ..Faults::default() });
    }
    assert!(cancelled > 20, "{cancelled}");
}

#[tokio::test]
async fn counter_that_was_set_back_makes_no_group_twice() {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 1);
    let made = data(&maker(&coordinator, 7)).await;
    let back = Op::Delete(Bytes::from_static(EXTENT_IDS));
    coordinator.txn(&[], &[back]).await.unwrap();
    let refused = maker(&coordinator, 8).make(ExtentKind::Data, &MEMBERS).await;
    let corrupt = Err(Error::Coordinator(coordinator::Error::Corrupt { reason: String::new() }));
    assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(&corrupt), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("set back"));
    let now = store::read(coordinator.as_ref(), made.record.id()).await.unwrap();
    assert_eq!(now, Some(made));
}

#[tokio::test]
async fn members_that_are_none_and_a_full_store_are_refused() {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 1);
    let maker = maker(&coordinator, 7);
    let none = maker.make(ExtentKind::Data, &[]).await;
    assert!(matches!(none, Err(Error::NoMembers(_))), "{none:?}");
    store.inject(Fault::Full);
    match maker.make(ExtentKind::Data, &MEMBERS).await {
        Err(Error::Coordinator(error)) => assert!(error.is_full(), "{error}"),
        answer => panic!("{answer:?}"),
    }
    assert_eq!(first(&data(&maker).await), 0);
}

/// Several writers make groups over faults: no group twice, each with the record of its writer, and
/// all that were made are returned but for at most one of each kind that its maker still doubts.
#[tokio::test(start_paused = true)]
async fn writers_share_no_group_and_lose_none() {
    for seed in 0..20 {
        let store = SimulatedStore::new();
        let coordinator = open(&store, seed);
        store.set_faults(Faults {
            unavailable_per_mille: 100,
            ambiguous_per_mille: 300,
            delay_max: Duration::from_millis(20),
        });
        let makers: Vec<GroupMaker> = (1..=3).map(|writer| maker(&coordinator, writer)).collect();
        let made = makers.iter().map(|maker| make_some(maker, 20));
        let made: Vec<GroupAt> =
            futures_util::future::join_all(made).await.into_iter().flatten().collect();
        let ids: BTreeSet<GroupId> = made.iter().map(|at| at.record.id()).collect();
        assert_eq!((made.len(), ids.len()), (60, 60), "seed {seed}: a group twice");
        store.set_faults(Faults::default());
        let all = store::read_all(coordinator.as_ref()).await.unwrap().groups;
        for at in &made {
            assert_eq!(all[&at.record.id()].record.as_ref(), Ok(&at.record), "seed {seed}");
        }
        assert_eq!(all.len(), 60, "seed {seed}: all calls succeeded, so no group is in doubt");
    }
}

/// Makes groups, and tries again where the coordinator failed.
async fn make_some(maker: &GroupMaker, count: usize) -> Vec<GroupAt> {
    let mut made = Vec::new();
    while made.len() < count {
        match maker.make(ExtentKind::Data, &MEMBERS).await {
            Ok(at) => {
                assert_eq!(at.record.writer(), maker.writer);
                made.push(at);
            }
            Err(Error::Coordinator(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    made
}
