use std::time::Duration;

use super::*;
use crate::capacity::api::ExtentKind;
use crate::capacity::groups::{GroupMaker, GroupRecord, change};
use crate::coordinator::{Faults, Op, SimulatedCoordinator, SimulatedStore};
use crate::env::{Env, SeededRand, SimClock, Tasks};
use crate::types::ClusterNumber;
use crate::types::Incarnation;
use crate::types::NodeId;

struct Rig {
    store: SimulatedStore,
    coordinator: Arc<SimulatedCoordinator>,
    maker: GroupMaker,
    env: Env,
}

fn rig(seed: u64) -> Rig {
    let store = SimulatedStore::new();
    let rand = Arc::new(SeededRand::new(seed));
    let env = Env { clock: Arc::new(SimClock::new()), rand, tasks: Tasks::new() };
    let coordinator = Arc::new(store.open(&env));
    let shared: Arc<dyn Coordinator> = Arc::clone(&coordinator) as _;
    let maker = GroupMaker::new(shared, ClusterNumber::ALONE, Incarnation::new(7));
    Rig { store, coordinator, maker, env }
}

impl Rig {
    async fn make(&self) -> GroupAt {
        self.maker.make(ExtentKind::Data, &[NodeId::new(1)]).await.unwrap()
    }

    async fn close(&self, group: GroupId) -> GroupAt {
        change(self.coordinator.as_ref(), group, &[], |record| Ok(record.closed())).await.unwrap()
    }

    async fn follower(&self) -> Arc<GroupFollower> {
        Arc::new(GroupFollower::start(Arc::clone(&self.coordinator) as _).await.unwrap())
    }

    fn follow(&self, follower: &Arc<GroupFollower>) {
        let (follower, clock) = (Arc::clone(follower), Arc::clone(&self.env.clock));
        let stop = self.env.tasks.stopping();
        drop(self.env.tasks.spawn("groups", async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = follower.follow(clock.as_ref()) => {}
            }
        }));
    }

    /// Everything that the coordinator has.
    async fn stored(&self) -> Vec<GroupAt> {
        let all = store::read_all(self.coordinator.as_ref()).await.unwrap();
        let at =
            |stored: Stored| GroupAt { record: stored.record.unwrap(), revision: stored.revision };
        all.groups.into_values().map(at).collect()
    }
}

async fn until(follower: &GroupFollower, revision: Revision) {
    let mut followed = follower.followed();
    let wait = followed.wait_for(|known| *known >= revision);
    drop(tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it follows").unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_is_there_and_what_changes_is_known() {
    let rig = rig(1);
    let first = rig.make().await;
    let follower = rig.follower().await;
    assert_eq!(follower.get(first.record.id()), Followed::Record(first.clone()));
    rig.follow(&follower);
    let second = rig.make().await;
    let closed = rig.close(first.record.id()).await;
    until(&follower, closed.revision).await;
    assert_eq!(follower.all(), [closed, second]);
    rig.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_group_is_read() {
    let rig = rig(1);
    let follower = rig.follower().await;
    let made = rig.make().await;
    let group = made.record.id();
    assert_eq!(follower.get(group), Followed::Unknown, "nothing follows");
    assert_eq!(follower.find(group).await.unwrap(), Some(made.clone()));
    assert_eq!(follower.get(group), Followed::Record(made.clone()), "it is noted");
    let never = GroupId::new(group.get() + 1).unwrap();
    assert_eq!(follower.find(never).await.unwrap(), None);
    // A known one is found without the coordinator.
    rig.store.set_faults(Faults { unavailable_per_mille: 1_000, ..Faults::default() });
    assert_eq!(follower.find(group).await.unwrap(), Some(made));
    assert!(matches!(follower.find(never).await, Err(Error::Coordinator(_))));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_only_gets_newer() {
    let rig = rig(1);
    let first = rig.make().await;
    let group = first.record.id();
    let follower = rig.follower().await;
    let closed = rig.close(group).await;
    follower.note(closed.clone());
    assert_eq!(follower.get(group), Followed::Record(closed.clone()));
    follower.note(first.clone());
    assert_eq!(follower.get(group), Followed::Record(closed.clone()), "a late answer");
    rig.follow(&follower);
    until(&follower, closed.revision).await;
    assert_eq!(follower.get(group), Followed::Record(closed.clone()));
    // A record that is removed does not come back with a late answer.
    rig.coordinator.txn(&[], &[Op::Delete(store::key(group))]).await.unwrap();
    until(&follower, Revision(closed.revision.0 + 1)).await;
    follower.note(closed);
    assert_eq!(follower.get(group), Followed::Unknown);
    rig.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn record_that_cannot_be_read_is_not_taken_for_the_old_one() {
    let rig = rig(1);
    let first = rig.make().await;
    let group = first.record.id();
    let follower = rig.follower().await;
    rig.follow(&follower);
    let newer = Op::Put(store::key(group), vec![9].into());
    rig.coordinator.txn(&[], &[newer]).await.unwrap();
    until(&follower, Revision(first.revision.0 + 1)).await;
    assert_eq!(follower.get(group), Followed::Unread(Unread::Newer(9)));
    assert!(matches!(follower.find(group).await, Err(Error::Unread { .. })));
    assert_eq!(follower.all(), []);
    rig.env.tasks.shutdown().await;
    // A start reads the same.
    assert_eq!(rig.follower().await.get(group), Followed::Unread(Unread::Newer(9)));
}

/// More changes than the store keeps for watches.
async fn flood(rig: &Rig) {
    let flood: Vec<Op> =
        (0..128).map(|n| Op::Put(format!("flood/{n}").into(), "x".into())).collect();
    for _ in 0..=(16_384 / flood.len()) {
        rig.coordinator.txn(&[], &flood).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn all_is_read_again_when_changes_were_missed() {
    let rig = rig(1);
    let (kept, removed) = (rig.make().await, rig.make().await);
    let follower = rig.follower().await;
    let closed = rig.close(kept.record.id()).await;
    rig.coordinator.txn(&[], &[Op::Delete(store::key(removed.record.id()))]).await.unwrap();
    flood(&rig).await;
    let read = rig.make().await;
    assert_eq!(follower.find(read.record.id()).await.unwrap(), Some(read.clone()));
    rig.follow(&follower);
    until(&follower, read.revision).await;
    assert_eq!(follower.all(), [closed, read]);
    rig.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn transaction_of_many_groups_is_seen_as_a_whole() {
    let rig = rig(1);
    let mut groups = Vec::new();
    for _ in 0..20 {
        groups.push(rig.make().await);
    }
    let follower = rig.follower().await;
    rig.follow(&follower);
    let mut followed = follower.followed();
    let changes = groups.iter().map(|at| at.replaced_by(&at.record.closed()));
    let (when, then): (Vec<_>, Vec<_>) = changes.unzip();
    rig.coordinator.txn(&when, &then).await.unwrap();
    followed.changed().await.unwrap();
    let is_closed = |at: &GroupAt| at.record == at.record.closed();
    assert!(follower.all().iter().all(is_closed), "all or none");
    rig.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn restored_store_replaces_what_was_known() {
    let rig = rig(1);
    let (first, second) = (rig.make().await, rig.make().await);
    let follower = rig.follower().await;
    let groups = [(
        first.record.id(),
        Stored { record: Ok(first.record.clone()), revision: first.revision },
    )];
    let older = AllGroups { revision: first.revision, groups: groups.into() };
    follower.take_groups(older);
    assert_eq!(follower.all(), [first]);
    assert_eq!(follower.get(second.record.id()), Followed::Unknown);
}

/// Groups are made and changed while the coordinator fails in all ways, and the follower reads some
/// of them itself. In the end it knows what is stored.
#[tokio::test(start_paused = true)]
async fn follower_arrives_at_what_is_stored() {
    for seed in 0..10 {
        let rig = rig(seed);
        let follower = rig.follower().await;
        rig.follow(&follower);
        rig.store.set_faults(Faults {
            unavailable_per_mille: 200,
            ambiguous_per_mille: 200,
            delay_max: Duration::from_millis(30),
        });
        for round in 0..60u64 {
            let made = loop {
                if let Ok(made) = rig.maker.make(ExtentKind::Data, &[NodeId::new(1)]).await {
                    break made;
                }
            };
            let group = made.record.id();
            if round % 3 == 0 {
                drop(follower.read(group).await);
            }
            let close = |record: &GroupRecord| Ok(record.closed());
            if let Ok(at) = change(rig.coordinator.as_ref(), group, &[], close).await {
                follower.note(at);
            }
            if round == 30 {
                while rig.coordinator.range(b"flood/").await.is_err() {}
                rig.store.set_faults(Faults::default());
                flood(&rig).await;
            }
        }
        rig.store.set_faults(Faults::default());
        let last = rig.make().await;
        until(&follower, last.revision).await;
        assert_eq!(follower.all(), rig.stored().await, "seed {seed}");
        rig.env.tasks.shutdown().await;
    }
}
