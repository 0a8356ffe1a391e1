use std::sync::Mutex;

use super::*;
use crate::capacity::ExtentKind;
use crate::capacity::groups;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupMaker;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::types::ClusterNumber;
use crate::types::Incarnation;

const NODE: NodeId = NodeId::new(2);

/// A cluster's coordinator, and the own store of a node.
struct World {
    env: Env,
    cluster: Arc<dyn Coordinator>,
    own: SimulatedStore,
}

impl World {
    fn new() -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let cluster = Arc::new(SimulatedStore::new().open(&env));
        Self { env, cluster, own: SimulatedStore::new() }
    }

    async fn group(&self, members: &[u64]) -> GroupId {
        let writer = Incarnation::new(7);
        let maker = GroupMaker::new(Arc::clone(&self.cluster), ClusterNumber::new(3), writer);
        let members: Vec<_> = members.iter().copied().map(NodeId::new).collect();
        maker.make(ExtentKind::Data, &members).await.unwrap().record.id()
    }

    async fn close(&self, group: GroupId) {
        let closed = |record: &GroupRecord| Ok(record.closed());
        groups::change(&*self.cluster, group, &[], closed).await.unwrap();
    }

    /// A start of the node. What it heard is listed.
    async fn start(&self) -> (Arc<KnownGroups>, Arc<Mutex<Vec<GroupId>>>) {
        let follower = Arc::new(GroupFollower::start(Arc::clone(&self.cluster)).await.unwrap());
        let own = Arc::new(self.own.open(&self.env));
        let known = Arc::new(KnownGroups::open(NODE, own, Arc::clone(&follower)).await.unwrap());
        let heard = Arc::<Mutex<Vec<GroupId>>>::default();
        let (clock, tasks) = (Arc::clone(&self.env.clock), &self.env.tasks);
        let following = Arc::clone(&clock);
        drop(tasks.spawn("follow", async move { follower.follow(following.as_ref()).await }));
        let (noting, list) = (Arc::clone(&known), Arc::clone(&heard));
        drop(tasks.spawn("note", async move {
            let heard = |record: GroupRecord| {
                list.lock().unwrap().push(record.id());
                async {}
            };
            noting.follow(clock.as_ref(), heard).await;
        }));
        (known, heard)
    }

    async fn wait(&self) {
        self.env.clock.sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn extents_are_created_in_open_groups_that_the_node_is_a_member_of() {
    let world = World::new();
    let (own, other) = (world.group(&[1, 2, 3]).await, world.group(&[1, 3]).await);
    let (known, _) = world.start().await;
    world.wait().await;
    let may = |extent| {
        let known = Arc::clone(&known);
        async move { known.may_create(extent).await.unwrap() }
    };
    assert_eq!(may(own.first()).await, MayCreate::Yes);
    assert_eq!(may(other.first()).await, MayCreate::Closed);
    let unknown = ExtentId::new(own.first().get() + 64_000);
    assert_eq!(may(unknown).await, MayCreate::Gone);
    // One that was made a moment ago is read.
    let new = world.group(&[2]).await;
    assert_eq!(may(new.first()).await, MayCreate::Yes);
    world.close(own).await;
    world.wait().await;
    assert_eq!(may(own.first()).await, MayCreate::Closed);
}

#[tokio::test(start_paused = true)]
async fn gone_extents_are_not_created() {
    let world = World::new();
    let group = world.group(&[2]).await;
    let extent = group.first();
    let (known, heard) = world.start().await;
    world.wait().await;
    let settled = |record: &GroupRecord| record.settled(extent, crate::types::ExtentOffset::START);
    groups::change(&*world.cluster, group, &[], settled).await.unwrap();
    let gone = Extents::of(group, [extent]).unwrap();
    let freed = |record: &GroupRecord| record.freed(gone, &[]);
    groups::change(&*world.cluster, group, &[], freed).await.unwrap();
    world.wait().await;
    assert!(known.is_gone(extent));
    assert_eq!(known.may_create(extent).await.unwrap(), MayCreate::Gone);
    let next = group.extents().nth(1).unwrap();
    assert_eq!(known.may_create(next).await.unwrap(), MayCreate::Yes);
    assert!(heard.lock().unwrap().len() >= 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_noted_is_known_after_a_start() {
    let world = World::new();
    let group = world.group(&[1, 2, 3]).await;
    let (known, _) = world.start().await;
    world.wait().await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, false)));
    world.close(group).await;
    world.wait().await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, true)));
    // The next start finds a coordinator that has lost everything.
    let lost = World { cluster: World::new().cluster, ..world };
    let (known, _) = lost.start().await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, true)));
    assert_eq!(known.may_create(group.first()).await.unwrap(), MayCreate::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_was_noted_stays_although_the_coordinator_was_restored() {
    let world = World::new();
    let group = world.group(&[1, 2, 3]).await;
    let extent = group.first();
    let (known, _) = world.start().await;
    let settled = |record: &GroupRecord| record.settled(extent, crate::types::ExtentOffset::START);
    groups::change(&*world.cluster, group, &[], settled).await.unwrap();
    let gone = Extents::of(group, [extent]).unwrap();
    let freed = |record: &GroupRecord| record.freed(gone, &[]);
    groups::change(&*world.cluster, group, &[], freed).await.unwrap();
    world.close(group).await;
    world.wait().await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, true)));
    // The same group, as it was made.
    let older = World { cluster: World::new().cluster, ..world };
    assert_eq!(older.group(&[1, 2, 3]).await, group);
    let (known, _) = older.start().await;
    older.wait().await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, true)));
    assert!(known.is_gone(extent));
    let next = group.extents().nth(1).unwrap();
    assert_eq!(known.may_create(next).await.unwrap(), MayCreate::Closed);
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_noted_before_it_is_stored() {
    let world = World::new();
    let group = world.group(&[2]).await;
    let (known, heard) = world.start().await;
    world.own.set_full(true);
    world.close(group).await;
    world.wait().await;
    assert_ne!(known.noted_state(group), Some((Generation::FIRST, true)));
    // But it is heeded.
    assert_eq!(known.may_create(group.first()).await.unwrap(), MayCreate::Closed);
    world.own.set_full(false);
    world.env.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(known.noted_state(group), Some((Generation::FIRST, true)));
    assert!(heard.lock().unwrap().contains(&group));
}
