use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::capacity::api::ExtentKind;
use crate::coordinator::{Fault, Faults, SimulatedCoordinator, SimulatedStore};
use crate::env::{Env, SeededRand, SimClock, Tasks};
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Incarnation;
use crate::types::NodeId;

fn open(store: &SimulatedStore, seed: u64) -> SimulatedCoordinator {
    let rand = Arc::new(SeededRand::new(seed));
    store.open(&Env { clock: Arc::new(SimClock::new()), rand, tasks: Tasks::new() })
}

fn id() -> GroupId {
    ExtentId::new(640).group()
}

fn at(place: u64) -> ExtentId {
    ExtentId::new(640 + place)
}

fn end(bytes: u64) -> ExtentOffset {
    ExtentOffset::new(bytes)
}

async fn put(store: &dyn Coordinator, key: Bytes, value: Bytes) -> Revision {
    match store.txn(&[], &[Op::Put(key, value)]).await.unwrap() {
        TxnReply::Committed(revision) => revision,
        TxnReply::Rejected(revision) => panic!("rejected at {revision:?}"),
    }
}

/// A store with one open group.
async fn made() -> (SimulatedStore, SimulatedCoordinator, GroupAt) {
    let store = SimulatedStore::new();
    let coordinator = open(&store, 1);
    let members = [1, 2, 3].map(NodeId::new).to_vec();
    let record = GroupRecord::new(id(), ExtentKind::Data, members, Incarnation::new(7)).unwrap();
    let revision = put(&coordinator, key(id()), record.encode()).await;
    (store, coordinator, GroupAt { record, revision })
}

fn close(record: &GroupRecord) -> Result<GroupRecord, Refusal> {
    Ok(record.closed())
}

#[test]
fn keys_name_their_group() {
    assert_eq!(key(id()), "group/000000000000000a");
    assert_eq!(group_of(b"group/000000000000000a"), Some(id()));
    let others = [
        "group/a",
        "group/000000000000000A",
        "group/+00000000000000a",
        "group/00000000000000000a",
        "group/ffffffffffffffff",
        "groups/000000000000000a",
    ];
    for other in others {
        assert_eq!(group_of(other.as_bytes()), None, "{other}");
    }
}

#[tokio::test]
async fn records_are_read_one_by_one_and_all_together() {
    let (_, coordinator, first) = made().await;
    assert_eq!(read(&coordinator, id()).await.unwrap(), Some(first.clone()));
    let other = ExtentId::new(704).group();
    assert_eq!(read(&coordinator, other).await.unwrap(), None);
    // A newer release wrote one, the record of another group lies under a key, a key is no group's.
    let newer = put(&coordinator, key(other), Bytes::from_static(&[9])).await;
    let third = ExtentId::new(768).group();
    put(&coordinator, key(third), first.record.encode()).await;
    let last = put(&coordinator, Bytes::from_static(b"group/x"), Bytes::new()).await;
    let all = read_all(&coordinator).await.unwrap();
    assert_eq!((all.revision, all.groups.len()), (last, 3));
    let stored = Stored { record: Ok(first.record), revision: first.revision };
    assert_eq!(all.groups[&id()], stored);
    let unread = Stored { record: Err(Unread::Newer(9)), revision: newer };
    assert_eq!(all.groups[&other], unread);
    assert_eq!(all.groups[&third].record, Err(Unread::Malformed("of another group")));
    for group in [other, third] {
        let refused = read(&coordinator, group).await;
        assert!(matches!(refused, Err(Error::Unread { .. })), "{refused:?}");
        let refused = change(&coordinator, group, &[], close).await;
        assert!(matches!(refused, Err(Error::Unread { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn change_is_written_once_and_a_repetition_writes_nothing() {
    let (_, coordinator, first) = made().await;
    let closed = change(&coordinator, id(), &[], close).await.unwrap();
    assert_eq!(closed.record, first.record.closed());
    assert!(closed.revision > first.revision);
    assert_eq!(change(&coordinator, id(), &[], close).await.unwrap(), closed);
    assert_eq!(read(&coordinator, id()).await.unwrap(), Some(closed));
}

#[tokio::test]
async fn refused_changes_and_unknown_groups_are_told() {
    let (_, coordinator, first) = made().await;
    let settle = |bytes| move |record: &GroupRecord| record.settled(at(3), end(bytes));
    change(&coordinator, id(), &[], settle(50)).await.unwrap();
    let second = change(&coordinator, id(), &[], settle(60)).await.unwrap_err();
    let settled = Refusal::Settled { extent: at(3), end: end(50) };
    assert!(matches!(second, Error::Refused { refusal, .. } if refusal == settled), "{second:?}");
    let other = ExtentId::new(704).group();
    let unknown = change(&coordinator, other, &[], close).await.unwrap_err();
    assert!(matches!(unknown, Error::NoSuchGroup(group) if group == other), "{unknown:?}");
    assert_eq!(first.record.length(at(3)), None);
}

#[tokio::test]
async fn unknown_outcomes_are_looked_up() {
    for fault in [Fault::AmbiguousApplied, Fault::AmbiguousLost, Fault::Outrun] {
        let (store, coordinator, _) = made().await;
        store.inject(fault);
        let closed = change(&coordinator, id(), &[], close).await.unwrap();
        assert_eq!(read(&coordinator, id()).await.unwrap(), Some(closed), "{fault:?}");
    }
}

#[tokio::test]
async fn who_cannot_look_up_an_unknown_outcome_is_told_so() {
    for fault in [Fault::AppliedThenAway, Fault::LostThenAway] {
        let (store, coordinator, _) = made().await;
        store.inject(fault);
        let answer = change(&coordinator, id(), &[], close).await;
        let ambiguous = matches!(answer, Err(Error::Coordinator(coordinator::Error::Ambiguous)));
        assert!(ambiguous, "{fault:?}: {answer:?}");
    }
    let (store, coordinator, first) = made().await;
    store.inject(Fault::Unavailable);
    let answer = change(&coordinator, id(), &[], close).await;
    let unavailable =
        matches!(answer, Err(Error::Coordinator(coordinator::Error::Unavailable { .. })));
    assert!(unavailable, "{answer:?}");
    assert_eq!(read(&coordinator, id()).await.unwrap(), Some(first));
}

#[tokio::test]
async fn change_needs_the_conditions_of_its_caller() {
    let (_, coordinator, first) = made().await;
    let leads = Bytes::from_static(b"leader");
    let since = put(&coordinator, leads.clone(), Bytes::from_static(b"me")).await;
    let when = [Compare::ModRevision(leads.clone(), since)];
    let settle = |record: &GroupRecord| record.settled(at(3), end(50));
    let settled = change(&coordinator, id(), &when, settle).await.unwrap();
    put(&coordinator, leads, Bytes::from_static(b"another")).await;
    let deposed = change(&coordinator, id(), &when, close).await.unwrap_err();
    assert!(matches!(deposed, Error::NotPermitted(group) if group == id()), "{deposed:?}");
    assert_eq!(read(&coordinator, id()).await.unwrap(), Some(settled));
    assert_eq!(first.record.state(), crate::capacity::groups::GroupState::Open);
}

#[tokio::test]
async fn change_is_a_part_of_a_larger_transaction() {
    let (_, coordinator, first) = made().await;
    let (when, then) = first.replaced_by(&first.record.closed());
    let roll = Op::Put(Bytes::from_static(b"partition/1"), Bytes::from_static(b"rolled"));
    let reply = coordinator.txn(std::slice::from_ref(&when), &[then.clone(), roll]).await.unwrap();
    assert!(matches!(reply, TxnReply::Committed(_)));
    assert_eq!(read(&coordinator, id()).await.unwrap().unwrap().record, first.record.closed());
    let late = coordinator.txn(&[when], &[then]).await.unwrap();
    assert!(matches!(late, TxnReply::Rejected(_)), "the record has changed since");
}

/// Several proposers settle the same extents, while answers are late, lost and ambiguous: each
/// extent has one end, which all of them hear of.
#[tokio::test(start_paused = true)]
async fn all_proposers_hear_of_the_same_ends() {
    for seed in 0..20 {
        let (store, _, _) = made().await;
        let coordinator = open(&store, seed);
        store.set_faults(Faults {
            unavailable_per_mille: 50,
            ambiguous_per_mille: 300,
            delay_max: Duration::from_millis(20),
        });
        let proposers = (1..=4).map(|proposer| propose_all(&coordinator, proposer));
        let heard = futures_util::future::join_all(proposers).await;
        store.set_faults(Faults::default());
        let record = read(&coordinator, id()).await.unwrap().unwrap().record;
        for (place, extent) in (0..).zip(id().extents().take(16)) {
            let length = record.length(extent).expect("it is settled");
            assert!(heard.iter().all(|ends: &Vec<ExtentOffset>| ends[place] == length));
        }
        assert!(record.length(at(16)).is_none());
    }
}

/// Proposes an end of its own for 16 extents. Returns the ends that it heard of.
async fn propose_all(coordinator: &dyn Coordinator, proposer: u64) -> Vec<ExtentOffset> {
    let mut ends = Vec::new();
    for extent in id().extents().take(16) {
        let settle = |record: &GroupRecord| record.settled(extent, end(proposer));
        ends.push(loop {
            match change(coordinator, id(), &[], settle).await {
                Ok(at) => break at.record.length(extent).unwrap(),
                Err(Error::Refused { refusal: Refusal::Settled { end, .. }, .. }) => break end,
                Err(Error::Coordinator(_)) => {}
                Err(error) => panic!("{error}"),
            }
        });
    }
    ends
}
