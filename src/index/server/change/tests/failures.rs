//! Changes that fail: the old partitions or the new ones, never neither.

use super::*;
use crate::coordinator;
use crate::index::api::Full;
use crate::index::api::Plan;

#[tokio::test]
async fn full_disk_leaves_the_parent_as_it_was() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write(1).await;
    let target = rig.target(&name(1)).await;
    world.capacity.set_full(true);
    let before = world.capacity.extents_of_index();
    let refused = rig.host.split(target.partition, &[RoutingKey::account(&name(1))]).await;
    assert_eq!(refused, Err(ChangeError::Refused(Error::Full(Full::Disks))));
    world.capacity.set_full(false);
    // The first child's log can be made, the second's not.
    let full = Fault::Refused(crate::capacity::Error::Full);
    world.capacity.fail(When::Once(1), full);
    let refused = rig.host.split(target.partition, &[RoutingKey::account(&name(1))]).await;
    assert_eq!(refused, Err(ChangeError::Refused(Error::Full(Full::Disks))));
    rig.do_chores().await;
    assert_eq!(world.capacity.extents_of_index(), before, "nothing is left behind");
    rig.write(2).await;
    rig.check(2).await;
    rig.host.shutdown().await;
    assert!(rig.deps.coordinator.range(b"partition/").await.unwrap().entries.len() == 1);
}

#[tokio::test]
async fn full_disk_leaves_the_neighbours_as_they_were() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.split(&[2]).await;
    rig.write(1).await;
    rig.host.flush().await.unwrap();
    let ids: Vec<_> = rig.map().await.partitions().iter().map(|p| p.id).collect();
    world.capacity.set_full(true);
    let refused = rig.host.merge(&ids).await;
    assert_eq!(refused, Err(ChangeError::Refused(Error::Full(Full::Disks))));
    world.capacity.set_full(false);
    rig.write(2).await;
    rig.check(2).await;
    rig.merge_all().await;
    rig.check(2).await;
    rig.host.shutdown().await;
}

#[tokio::test]
async fn full_disk_of_the_coordinator_changes_nothing_and_is_reported_as_such() {
    for change in [Change::Split, Change::Merge, Change::Move] {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write(1).await;
        rig.split(&[10]).await;
        rig.tidy().await;
        let before = rig.map().await;
        let extents = world.capacity.extents_of_index();
        world.store.set_full(true);
        let refused = rig.change(change).await;
        assert!(is_refused(&refused), "{change:?}: {refused:?}");
        world.store.set_full(false);
        rig.do_chores().await;
        assert_eq!(rig.map().await.partitions(), before.partitions(), "{change:?}");
        assert_eq!(world.capacity.extents_of_index(), extents, "{change:?}: nothing is left");
        rig.write(2).await;
        rig.check(2).await;
        rig.change(change).await.unwrap();
        rig.check(2).await;
        rig.host.shutdown().await;
    }
}

/// Any transaction of a change is refused for want of room, and the next calls are not.
#[tokio::test]
async fn change_that_finds_no_room_at_any_step_changes_nothing() {
    for change in [Change::Split, Change::Merge, Change::Move] {
        let mut refusals = 0;
        for transaction in 0..8 {
            let world = World::empty();
            let rig = open(&world).await;
            rig.write(1).await;
            rig.split(&[10]).await;
            rig.tidy().await;
            let before = rig.map().await;
            world.store.inject_after(transaction, coordinator::Fault::Full);
            let done = rig.change(change).await;
            if done.is_err() {
                refusals += 1;
                assert!(is_refused(&done), "{change:?}, {transaction}: {done:?}");
                assert_eq!(rig.map().await.partitions(), before.partitions(), "{change:?}");
            }
            rig.write(2).await;
            rig.check(2).await;
            rig.host.shutdown().await;
        }
        assert!(refusals > 0, "{change:?}");
    }
}

/// Its outcome is unknown until there is room.
#[tokio::test(start_paused = true)]
async fn unknown_outcome_on_a_full_disk_is_reported_and_served_once_there_is_room() {
    for change in [Change::Split, Change::Merge, Change::Move] {
        let mut unknown = 0;
        for transaction in 0..4 {
            let world = World::empty();
            let rig = open(&world).await;
            rig.write(1).await;
            rig.split(&[10]).await;
            rig.tidy().await;
            world.store.inject_after(transaction, coordinator::Fault::LostThenFull);
            let done = rig.change(change).await;
            if done.is_ok() {
                // It has fewer transactions.
                break;
            }
            // Ids that were taken for it need not be recorded.
            assert!(is_refused(&done) || is_doubtful(&done), "{change:?}, {transaction}: {done:?}");
            unknown += usize::from(is_doubtful(&done));
            world.store.set_full(false);
            rig.deps.env.clock.sleep(Duration::from_secs(30)).await;
            rig.write(2).await;
            rig.check(2).await;
            rig.host.shutdown().await;
        }
        assert!(unknown > 0, "{change:?}");
    }
}

/// Planned changes are carried out and refused like requested ones.
#[tokio::test(start_paused = true)]
async fn plans_are_carried_out_or_refused() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=20).await;
    let key = |number| RoutingKey::account(&name(number));
    let carry_out = async |plan: Plan| rig.host.carry_out(&plan).await;
    let split = carry_out(Plan::Split(rig.serving(1), vec![key(10)])).await.unwrap();
    assert_eq!(split.partitions, [rig.serving(1), rig.serving(20)]);
    carry_out(Plan::Move(rig.serving(1), HostId::new(1))).await.unwrap();
    assert_eq!(rig.target(&name(1)).await.host, HostId::new(1));
    let gone = carry_out(Plan::Split(PartitionId::new(999), vec![key(5)])).await;
    assert_eq!(gone, Err(ChangeError::NoSuchPartition));
    let nowhere = carry_out(Plan::Move(rig.serving(1), HostId::new(9))).await;
    assert_eq!(nowhere, Err(ChangeError::NoSuchHost));
    let part = KeyRange::new(key(12), Some(key(15)));
    let striped = carry_out(Plan::Stripe(rig.serving(20), part, 4)).await;
    assert_eq!(striped, Err(ChangeError::NotStripable));

    let both = || Plan::Merge(vec![rig.serving(1), rig.serving(20)]);
    world.store.set_full(true);
    assert!(is_refused(&carry_out(both()).await));
    world.store.set_full(false);
    // The refusal is remembered for a while, and the coordinator is not asked again until then.
    assert!(is_refused(&carry_out(both()).await));
    rig.deps.env.clock.sleep(Duration::from_secs(1)).await;
    carry_out(both()).await.unwrap();
    let evenly = carry_out(Plan::SplitEvenly(rig.serving(1), 4)).await.unwrap();
    assert_eq!(evenly.partitions.len(), 4);
    rig.check(20).await;
    rig.host.shutdown().await;
    let late = carry_out(Plan::Move(evenly.partitions[0], HostId::new(0))).await;
    assert!(matches!(late, Err(ChangeError::Refused(Error::Unavailable(_)))), "{late:?}");
}

/// The neighbours lie on two hosts: one is moved before they are merged, and stays where it is when
/// they are not.
#[tokio::test]
async fn merge_that_finds_no_room_after_a_move_is_not_reported_as_nothing() {
    let (mut partly, mut nothing) = (0, 0);
    for transaction in 0..8 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..=20).await;
        rig.split(&[10]).await;
        rig.host.move_to(rig.serving(20), HostId::new(1)).await.unwrap();
        rig.tidy().await;
        let before = rig.map().await;
        let (first, second) = (rig.serving(1), rig.serving(20));
        world.store.inject_after(transaction, coordinator::Fault::Full);
        let Err(refused) = rig.host.merge(&[first, second]).await else { continue };
        let has_moved = rig.map().await.partitions() != before.partitions();
        partly += usize::from(has_moved);
        nothing += usize::from(!has_moved);
        if let ChangeError::PartlyDone(cause) = refused {
            assert!(has_moved && is_refused(&Err(*cause)), "{transaction}");
        } else {
            let refused = Err(refused);
            assert!(!has_moved && is_refused(&refused), "{transaction}: {refused:?}");
        }
        rig.write(21).await;
        rig.check(21).await;
        rig.host.shutdown().await;
    }
    assert!(partly > 1 && nothing > 0, "{partly}, {nothing}");
}

/// Refused for want of room: nothing has changed.
fn is_refused(done: &Result<Changed, ChangeError>) -> bool {
    matches!(done, Err(ChangeError::Refused(Error::Full(Full::Coordinator(_)))))
}

/// What helps is room, whether or not it has happened.
fn is_doubtful(done: &Result<Changed, ChangeError>) -> bool {
    matches!(done, Err(ChangeError::Failed(Error::Full(Full::Coordinator(_)))))
}

/// Whatever call of the layer below fails, and whether or not it was carried out: what is served is
/// right, and after a restart everything is there and takes writes (I8).
#[tokio::test]
async fn change_that_fails_anywhere_leaves_the_old_or_the_new_partitions() {
    let failures = [
        Fault::Refused(crate::capacity::Error::Full),
        Fault::Lied(crate::capacity::Error::Poisoned { disk: 0 }),
        Fault::Torn(crate::capacity::Error::Poisoned { disk: 0 }),
    ];
    for change in [Change::Split, Change::Merge, Change::Move] {
        let mut failed = 0;
        for fault in &failures {
            for call in 0..14 {
                let world = World::empty();
                let rig = open(&world).await;
                rig.write_all(1..=20).await;
                rig.split(&[10]).await;
                rig.host.flush().await.unwrap();
                rig.write(21).await;
                world.capacity.fail(When::Once(call), fault.clone());
                failed += usize::from(rig.change(change).await.is_err());
                rig.check(21).await;
                drop(rig);
                let rig = open(&world).await;
                rig.check(21).await;
                rig.write(22).await;
                rig.check(22).await;
                rig.host.shutdown().await;
            }
        }
        match change {
            Change::Split | Change::Merge => assert!(failed > 3, "{change:?}: {failed} failed"),
            // The new host gets over any one failure by opening the partition anew.
            Change::Move => assert_eq!(failed, 0),
        }
    }
}

/// A capacity node that fails for a while must not keep a partition closed for good. (A move gets
/// over a poisoned disk: its log goes on elsewhere.)
#[tokio::test(start_paused = true)]
async fn partition_that_does_not_open_after_a_move_is_served_once_it_does() {
    let mut reopened = 0;
    for call in 0..14 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..=20).await;
        let id = rig.target(&name(1)).await.partition;
        let fails = || Fault::Refused(crate::capacity::Error::Ended { doing: "test" });
        world.capacity.fail(When::From(call), fails());
        let moved = rig.host.move_to(id, HostId::new(1)).await;
        if moved.is_ok() || rig.host.partitions() > 0 {
            continue;
        }
        // No request waits for it, and nothing is done to it.
        let refused = Err(ChangeError::NoSuchPartition);
        assert_eq!(rig.host.move_to(id, HostId::new(0)).await, refused);
        rig.deps.env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.host.partitions(), 0, "nothing can be fenced");
        world.capacity.fail(When::Once(usize::MAX), fails());
        rig.deps.env.clock.sleep(REOPEN_PAUSE_MAX * 2).await;
        rig.check(20).await;
        rig.write(21).await;
        rig.check(21).await;
        let back = rig.host.move_to(id, HostId::new(0)).await.unwrap();
        assert_eq!(back.partitions, [id]);
        let events = rig.host.changes_after(0);
        assert_eq!(events.len(), 2);
        assert!(events[0].pause > Duration::from_secs(60), "{events:?}");
        rig.tidy().await;
        let owned = rig.host.owned_extents().await;
        let map = rig.map().await;
        let runs =
            rig.all().iter().map(|one| one.core.published().sources.entries().len()).sum::<usize>();
        assert_eq!(owned.len(), map.partitions()[0].log.len() + runs, "{owned:?}");
        rig.host.shutdown().await;
        reopened += 1;
    }
    assert!(reopened > 0);
}

#[tokio::test(start_paused = true)]
async fn server_stops_although_a_partition_does_not_open() {
    let mut stopped = 0;
    for call in 0..14 {
        let rig = after_a_move_that_fails_from(call, &World::empty()).await;
        stopped += usize::from(rig.host.partitions() == 0);
        rig.host.shutdown().await;
    }
    assert!(stopped > 0);
}
