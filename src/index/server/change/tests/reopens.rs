//! Partitions that stopped writing: they are opened again in place, whatever became of what stopped
//! them.

use async_trait::async_trait;

use super::*;
use crate::coordinator;
use crate::index::Objects;
use crate::index::engine::testing::is_no_room;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;

/// Longer than any pause between two tries.
const LONG: Duration = Duration::from_secs(60);

impl Rig {
    /// Writes as a router does: with the map as it is, and again while the owner changes.
    async fn route(&self, number: u64) -> Result<(), Error> {
        let begun = self.deps.env.clock.monotonic();
        loop {
            let target = self.target(&name(number)).await;
            let (name, id) = (name(number), AccountId::new(number));
            let write = Write::CreateAccount { name, id, anonymous: true };
            match self.host.write(target, write).await {
                Err(Error::WrongPartition) => {
                    let waited = self.deps.env.clock.monotonic() - begun;
                    assert!(waited < LONG, "{number} waits too long");
                    self.deps.env.clock.sleep(Duration::from_millis(10)).await;
                }
                done => return done.map(|_| ()),
            }
        }
    }

    /// Reads as a router does.
    async fn has_routed(&self, number: u64) -> bool {
        loop {
            let target = self.target(&name(number)).await;
            match self.host.read(target, Read::Account(name(number))).await {
                Err(Error::WrongPartition) => self.sleep(Duration::from_millis(10)).await,
                found => return found.is_ok(),
            }
        }
    }

    async fn sleep(&self, duration: Duration) {
        self.deps.env.clock.sleep(duration).await;
    }

    fn stopped(&self) -> usize {
        self.all().iter().filter(|one| !one.core.may_write_log()).count()
    }
}

#[tokio::test(start_paused = true)]
async fn who_writes_waits_while_a_partition_is_opened_again() {
    for fault in [coordinator::Fault::AppliedThenAway, coordinator::Fault::LostThenAway] {
        let mut world = World::empty();
        world.config.log_extent_bytes = 2000;
        let rig = open(&world).await;
        rig.write_all(1..=20).await;
        let epoch = rig.target(&name(1)).await.epoch;
        world.store.inject(fault);
        for number in 21..=60 {
            rig.route(number).await.unwrap();
            assert!(rig.has_routed(1).await, "reads go on");
        }
        assert_ne!(rig.target(&name(1)).await.epoch, epoch, "no roll was in doubt");
        rig.check(60).await;
        assert_eq!(rig.stopped(), 0);
        rig.tidy().await;
        let mut used = world.capacity.extents_of_index();
        used.sort();
        assert_eq!(rig.host.owned_extents().await, used);
        drop(rig);
        let rig = open(&world).await;
        rig.check(60).await;
        assert_eq!(rig.host.owned_extents().await, used, "nothing was left behind");
        rig.host.shutdown().await;
    }
}

/// Each of the merged partitions is followed by a task of its own, at the same time.
#[tokio::test(start_paused = true)]
async fn what_a_merge_in_doubt_has_made_is_opened_once() {
    let mut doubts = 0;
    // Delays are random: calls that come before shift them.
    for (after, shift) in (0..8).flat_map(|after| (0..12).map(move |shift| (after, shift))) {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..=20).await;
        rig.split(&[7, 14]).await;
        rig.host.flush().await.unwrap();
        let delay_max = Duration::from_millis(20);
        world.store.set_faults(coordinator::Faults { delay_max, ..Default::default() });
        for _ in 0..shift {
            drop(rig.deps.coordinator.get(b"any").await);
        }
        let map = rig.map().await;
        world.store.inject_after(after, coordinator::Fault::AppliedThenAway);
        let all: Vec<_> = map.partitions().iter().map(|partition| partition.id).collect();
        let is_in_doubt = rig.host.merge(&all).await.is_err();
        doubts += usize::from(is_in_doubt && rig.map().await.partitions().len() == 1);
        rig.sleep(LONG).await;
        assert_eq!(rig.stopped(), 0, "{after}, {shift}");
        rig.route(21).await.unwrap();
        rig.check(21).await;
        assert_eq!(rig.host.partitions(), rig.map().await.partitions().len());
        rig.host.shutdown().await;
    }
    assert!(doubts > 0, "no merge was in doubt and happened");
}

/// The outcome of a roll is unknown, and cannot be found out until there is room.
#[tokio::test(start_paused = true)]
async fn partition_whose_roll_is_in_doubt_on_a_full_disk_serves_again_once_there_is_room() {
    let mut world = World::empty();
    world.config.log_extent_bytes = 2000;
    let rig = open(&world).await;
    rig.write_all(1..=20).await;
    // The map cannot be read either.
    let target = rig.target(&name(1)).await;
    world.store.inject(coordinator::Fault::LostThenFull);
    let begun = rig.deps.env.clock.monotonic();
    let mut written = 20;
    let refused = loop {
        let number = written + 1;
        let (name, id) = (name(number), AccountId::new(number));
        let write = Write::CreateAccount { name, id, anonymous: true };
        match rig.host.write(target, write).await {
            Ok(_) => written = number,
            Err(Error::WrongPartition) => {
                let waited = rig.deps.env.clock.monotonic() - begun;
                assert!(waited < LONG, "{number} waits too long");
                rig.sleep(Duration::from_millis(10)).await;
            }
            Err(error) => break error,
        }
    };
    assert!(is_no_room(&refused), "{refused:?}");
    assert_eq!(rig.stopped(), 1);
    let read = rig.host.read(target, Read::Account(name(1))).await;
    assert!(matches!(read, Ok(ReadReply::Account(_))), "reads go on: {read:?}");
    rig.sleep(LONG).await;
    world.store.set_full(false);
    rig.sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.stopped(), 0);
    rig.check(written).await;
    for number in written + 1..=60 {
        rig.route(number).await.unwrap();
    }
    rig.check(60).await;
    rig.host.shutdown().await;
}

/// Whether the change came true or not, who serves afterwards has all rows and takes writes.
#[tokio::test(start_paused = true)]
async fn change_of_unknown_outcome_is_settled_by_opening_again() {
    for change in [Change::Split, Change::Merge, Change::Move] {
        let mut doubts = BTreeSet::new();
        for fault in [coordinator::Fault::AppliedThenAway, coordinator::Fault::LostThenAway] {
            for after in 0..6 {
                let world = World::empty();
                let rig = open(&world).await;
                rig.write_all(1..=20).await;
                rig.split(&[10]).await;
                rig.host.flush().await.unwrap();
                rig.write(21).await;
                world.store.inject_after(after, fault);
                let changed = rig.change(change).await;
                // What no transaction of the change met must not meet one later.
                for _ in 0..10 {
                    drop(rig.deps.coordinator.txn(&[], &[]).await);
                }
                drop(rig.deps.coordinator.get(b"any").await);
                rig.sleep(LONG).await;
                if changed.is_err() {
                    doubts.insert(rig.map().await.partitions().len());
                }
                let what = format!("{change:?}, {fault:?} after {after}");
                assert_eq!(rig.stopped(), 0, "{what}");
                rig.route(22).await.unwrap();
                rig.check(22).await;
                assert_eq!(rig.host.partitions(), rig.map().await.partitions().len(), "{what}");
                rig.tidy().await;
                let mut used = world.capacity.extents_of_index();
                used.sort();
                assert_eq!(rig.host.owned_extents().await, used, "{what}");
                drop(rig);
                let rig = open(&world).await;
                rig.check(22).await;
                assert_eq!(rig.host.owned_extents().await, used, "left behind: {what}");
                rig.host.shutdown().await;
            }
        }
        let both = match change {
            Change::Split => [2, 3],
            Change::Merge => [1, 2],
            Change::Move => [2, 2],
        };
        assert_eq!(doubts, BTreeSet::from(both), "{change:?} came true and did not");
    }
}

/// Panics at one account.
#[derive(Debug)]
struct Panics;

#[async_trait]
impl Machine for Panics {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<crate::index::api::WriteReply, Error> {
        if matches!(write, Write::CreateAccount { id, .. } if id.get() == 13) {
            panic!("thirteen");
        }
        Objects.evaluate(view, write, now, out).await
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error> {
        Objects.answer(view, range, read, now).await
    }
}

#[tokio::test(start_paused = true)]
async fn partition_whose_committer_panicked_is_opened_again() {
    let world = World::empty();
    let deps = Dependencies { machine: Arc::new(Panics), ..world.deps() };
    let host = Arc::new(IndexServer::open(vec![deps.clone()], world.config).await.unwrap());
    let rig = Rig { deps, host };
    rig.write_all(1..=12).await;
    let lost = rig.route(13).await;
    assert!(matches!(lost, Err(Error::Unavailable(_))), "nobody knows what was done: {lost:?}");
    rig.route(14).await.unwrap();
    assert!(rig.has(12).await && !rig.has(13).await && rig.has(14).await);
    assert_eq!(rig.deps.env.tasks.health().panics("partition committer"), 1);
    rig.host.shutdown().await;
}
