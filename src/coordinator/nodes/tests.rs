use tokio::sync::Mutex;

use super::*;
use crate::coordinator::Event;
use crate::coordinator::Follows;
use crate::coordinator::SimulatedStore;
use crate::coordinator::simulated::Fault;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::types::NodeRoles;
use crate::types::Timestamp;

const CLUSTER: ClusterNumber = ClusterNumber::new(3);

struct World {
    env: Env,
    store: SimulatedStore,
    coordinator: Arc<dyn Coordinator>,
}

impl World {
    fn new() -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let store = SimulatedStore::new();
        let coordinator = Arc::new(store.open(&env));
        Self { env, store, coordinator }
    }

    async fn add(&self, name: &str) -> Result<NodeId, JoinError> {
        let node = new_id(&*self.coordinator, CLUSTER).await?;
        add(&*self.coordinator, node, &record(name)).await?;
        Ok(node)
    }

    async fn begin(&self, node: NodeId) -> Result<Alive, JoinError> {
        Alive::begin(Arc::clone(&self.coordinator), CLUSTER, node, life()).await
    }

    async fn table(&self) -> Arc<NodeTable> {
        let table = Arc::new(NodeTable::start(Arc::clone(&self.coordinator)).await.unwrap());
        let (following, clock) = (Arc::clone(&table), Arc::clone(&self.env.clock));
        let follow = async move { following.follow(clock.as_ref()).await };
        drop(self.env.tasks.spawn("follow", follow));
        table
    }

    async fn wait(&self, seconds: u64) {
        self.env.clock.sleep(Duration::from_secs(seconds)).await;
    }
}

fn record(name: &str) -> NodeRecord {
    let (machine, zone) = (format!("machine of {name}"), "zone".to_owned());
    NodeRecord { name: name.to_owned(), machine, zone, state: NodeState::Active }
}

fn life() -> NodeLife {
    NodeLife {
        incarnation: Incarnation::new(0),
        roles: NodeRoles::ALL,
        host: "10.0.0.1".to_owned(),
        port: 7000,
        time: Timestamp::ZERO,
        room: 1 << 30,
        load: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn names_belong_to_one_node() {
    let world = World::new();
    let first = world.add("one").await.unwrap();
    assert_eq!(ClusterNumber::of(first.get()), CLUSTER);
    let second = world.add("two").await.unwrap();
    assert_ne!(first, second);
    let error = world.add("one").await.unwrap_err();
    assert!(matches!(error, JoinError::NameTaken(owner) if owner == first), "{error}");
    // The answer may be lost, or the node may have been stopped before it came.
    world.store.inject_after(1, Fault::AmbiguousApplied);
    let third = world.add("three").await.unwrap();
    add(&*world.coordinator, third, &record("three")).await.unwrap();
    let error = world.add("three").await.unwrap_err();
    assert!(matches!(error, JoinError::NameTaken(owner) if owner == third), "{error}");
}

#[tokio::test(start_paused = true)]
async fn node_has_one_life_at_a_time_and_later_ones_have_higher_incarnations() {
    let world = World::new();
    let node = world.add("one").await.unwrap();
    let first = world.begin(node).await.unwrap();
    let incarnation = first.life().incarnation;
    // A copy of the data directory.
    let elsewhere = NodeLife { host: "10.0.0.2".to_owned(), ..life() };
    let copied = Alive::begin(Arc::clone(&world.coordinator), CLUSTER, node, elsewhere);
    let error = copied.await.unwrap_err();
    assert!(
        matches!(error, JoinError::Alive { incarnation: other, .. } if other == incarnation),
        "{error}"
    );
    // The process was killed and started again: nobody else has its address.
    let again = world.begin(node).await.unwrap();
    assert!(again.life().incarnation > incarnation);
    first.end().await.unwrap();
    let table = world.table().await;
    assert_eq!(table.get(node).unwrap().life.as_ref(), Some(again.life()));
    again.end().await.unwrap();
    let second = world.begin(node).await.unwrap();
    let unknown = world.begin(NodeId::new(77)).await.unwrap_err();
    assert!(matches!(unknown, JoinError::NoSuchNode(_)), "{unknown}");
    second.end().await.unwrap();
    set_state(&*world.coordinator, node, NodeState::Removed).await.unwrap();
    let removed = world.begin(node).await.unwrap_err();
    assert!(matches!(removed, JoinError::NoSuchNode(_)), "{removed}");
}

#[tokio::test(start_paused = true)]
async fn a_life_that_came_and_went_is_noticed() {
    let world = World::new();
    let node = world.add("one").await.unwrap();
    let last = async || last_life(&*world.coordinator).await.unwrap();
    let never = last().await;
    let alive = world.begin(node).await.unwrap();
    let first = last().await;
    assert!(first > never);
    world.wait(60).await;
    assert_eq!(last().await, first, "that a life goes on is no begin");
    alive.end().await.unwrap();
    assert_eq!(last().await, first);
    world.begin(node).await.unwrap().end().await.unwrap();
    assert!(last().await > first);
}

#[tokio::test(start_paused = true)]
async fn table_shows_who_lives_who_is_away_and_what_operators_want() {
    let world = World::new();
    let table = world.table().await;
    let node = world.add("one").await.unwrap();
    world.wait(1).await;
    assert_eq!(table.all(), [NodeAt { id: node, record: record("one"), life: None }]);
    let alive = world.begin(node).await.unwrap();
    let incarnation = alive.life().incarnation;
    let clock = Arc::clone(&world.env.clock);
    let alive_again = Arc::new(Mutex::new(alive));
    let alive = Arc::clone(&alive_again);
    let keeping = world.env.tasks.spawn("keep", async move {
        alive.lock().await.keep(clock.as_ref(), || (500, 70)).await;
    });
    // It lives for longer than a session without renewal, and shows its load.
    world.wait(60).await;
    let seen = table.get(node).unwrap().life.unwrap();
    assert_eq!((seen.incarnation, seen.room, seen.load), (incarnation, 500, 70));
    set_state(&*world.coordinator, node, NodeState::Draining).await.unwrap();
    set_place(&*world.coordinator, node, "other", "zone-2").await.unwrap();
    world.wait(1).await;
    let seen = table.get(node).unwrap().record;
    assert_eq!((&*seen.name, &*seen.machine, &*seen.zone), ("one", "other", "zone-2"));
    assert_eq!(seen.state, NodeState::Draining);
    // The process ends.
    keeping.abort();
    world.wait(5).await;
    assert!(table.get(node).unwrap().life.is_some());
    world.wait(10).await;
    assert_eq!(table.get(node).unwrap().life, None);
    // It was only cut off.
    let elsewhere = NodeLife { host: "10.0.0.3".to_owned(), ..life() };
    let copied = Alive::begin(Arc::clone(&world.coordinator), CLUSTER, node, elsewhere).await;
    let copied = copied.unwrap();
    let (mut again, life) = (alive_again.lock().await, table.get(node).unwrap().life);
    assert_eq!(life, None);
    let later = again.resume().await.unwrap_err();
    assert!(matches!(later, JoinError::Alive { .. }), "{later}");
    copied.end().await.unwrap();
    again.resume().await.unwrap();
    world.wait(1).await;
    assert_eq!(table.get(node).unwrap().life.unwrap().incarnation, incarnation);
    set_state(&*world.coordinator, node, NodeState::Removed).await.unwrap();
    let removed = again.resume().await.unwrap_err();
    assert!(matches!(removed, JoinError::NoSuchNode(_)), "{removed}");
}

/// Its changes are late, and must not bring a life back that the table has seen end.
#[tokio::test(start_paused = true)]
async fn table_that_is_read_again_is_ahead_of_its_watch() {
    let world = World::new();
    let node = world.add("one").await.unwrap();
    let table = NodeTable::start(Arc::clone(&world.coordinator)).await.unwrap();
    let clock = Arc::clone(&world.env.clock);
    let known = || table.incarnation(node);
    // Nobody follows it.
    let alive = world.begin(node).await.unwrap();
    assert_eq!(known(), None);
    table.refresh().await.unwrap();
    assert_eq!(known(), Some(alive.life().incarnation));
    alive.end().await.unwrap();
    table.refresh().await.unwrap();
    assert_eq!(known(), None);
    // The watch begins with what came before.
    let key = table::life_key(node);
    let late = Event {
        key: key.clone(),
        value: Some(life().encode()),
        revision: Revision(table.revision().0 - 1),
    };
    table.take(vec![late]);
    assert_eq!(known(), None);
    let again = world.begin(node).await.unwrap();
    tokio::select! {
        biased;
        () = table.follow(clock.as_ref()) => {}
        () = world.wait(1) => {}
    }
    assert_eq!(known(), Some(again.life().incarnation));
}

/// The next transaction of the life is one whose answer is lost.
#[tokio::test(start_paused = true)]
async fn life_goes_on_after_an_answer_that_was_lost() {
    for fault in [Fault::AmbiguousApplied, Fault::AmbiguousLost] {
        let world = World::new();
        let node = world.add("one").await.unwrap();
        let mut alive = world.begin(node).await.unwrap();
        let clock = Arc::clone(&world.env.clock);
        world.store.inject(fault);
        let keeping = world.env.tasks.spawn("keep", async move {
            alive.keep(clock.as_ref(), || (1, 1)).await;
        });
        world.wait(60).await;
        assert!(!keeping.is_finished(), "{fault:?}");
        keeping.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn life_that_is_over_says_why() {
    let world = World::new();
    let node = world.add("one").await.unwrap();
    let alive = world.begin(node).await.unwrap();
    world.coordinator.close_session(alive.session).await.unwrap();
    let why = alive.why_over().await.unwrap();
    assert!(matches!(why, JoinError::SessionEnded), "{why}");
    let later = world.begin(node).await.unwrap();
    let why = alive.why_over().await.unwrap();
    let incarnation = later.life().incarnation;
    assert!(matches!(why, JoinError::Alive { incarnation: by, .. } if by == incarnation), "{why}");
    set_state(&*world.coordinator, node, NodeState::Removed).await.unwrap();
    let why = alive.why_over().await.unwrap();
    assert!(matches!(why, JoinError::NoSuchNode(_)), "{why}");
}

#[tokio::test(start_paused = true)]
async fn life_ends_when_the_coordinator_says_so() {
    let world = World::new();
    let node = world.add("one").await.unwrap();
    let mut alive = world.begin(node).await.unwrap();
    let clock = Arc::clone(&world.env.clock);
    let session = alive.session;
    let keeping = world.env.tasks.spawn("keep", async move {
        alive.keep(clock.as_ref(), || (1, 1)).await;
    });
    world.wait(4).await;
    assert!(!keeping.is_finished());
    world.coordinator.close_session(session).await.unwrap();
    world.wait(4).await;
    assert!(keeping.is_finished());
}
