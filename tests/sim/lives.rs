//! The index of a simulated cluster in a process of its own, which front ends of another process
//! call. The process is killed, stands still, and hands the index over, one life after the other.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use blockyard::capacity::cluster::ClusterCapacity;
use blockyard::capacity::cluster::Present;
use blockyard::capacity::groups::GroupFollower;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::Guarded;
use blockyard::coordinator::Op;
use blockyard::coordinator::TxnReply;
use blockyard::env::Clock;
use blockyard::env::Env;
use blockyard::env::TaskControl;
use blockyard::env::Tasks;
use blockyard::index::ClusterRequests;
use blockyard::index::Error;
use blockyard::index::InFlight;
use blockyard::index::IndexHost;
use blockyard::index::IndexServer;
use blockyard::index::LocalRequests;
use blockyard::index::Processes;
use blockyard::index::WriterSessions;
use blockyard::index::remote::FrontEnds;
use blockyard::index::remote::INDEX_SERVICE;
use blockyard::index::remote::IndexPlace;
use blockyard::index::remote::IndexService;
use blockyard::index::remote::KnownWriters;
use blockyard::index::remote::ServedAt;
use blockyard::index::remote::ServedIndex;
use blockyard::node::assembly::Base;
use blockyard::node::assembly::IndexParts;
use blockyard::node::assembly::IndexPlan;
use blockyard::reclaim::Reclaim;
use blockyard::reclaim::ReclaimConfig;
use blockyard::rpc::CallerConfig;
use blockyard::rpc::NodeIdentity;
use blockyard::rpc::RemoteNode;
use blockyard::telemetry::Registry;
use blockyard::types::RoutingKey;
use bytes::Bytes;
use tokio::sync::watch;

use crate::counts::Counts;
use crate::draw::Draw;
use crate::nodes::CapacityNodes;
use crate::nodes::FRONT;
use crate::nodes::Process;
use crate::nodes::SERVERS;
use crate::nodes::until_stopped;
use crate::rig::Machine;
use crate::stack::HOSTS;
use crate::stack::index_config;
use crate::watch::Watch;
use crate::watch::Watched;

/// How often groups are repaired.
const REPAIR_EVERY: Duration = Duration::from_secs(1);
/// The key of the claim. Each life changes it, so that earlier ones change nothing any more.
const CLAIM: &[u8] = b"claim/index";

/// What each life is made of.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) machine: Machine,
    pub(crate) nodes: Arc<CapacityNodes>,
    pub(crate) coordinator: Arc<dyn Coordinator>,
    pub(crate) borders: Vec<RoutingKey>,
    pub(crate) reclaim: ReclaimConfig,
    pub(crate) watch: Watch,
    /// How the front end calls.
    pub(crate) front: CallerConfig,
}

/// Who has a session: the front end, and the process that serves.
#[derive(Debug)]
struct Sessions {
    front: NodeIdentity,
    here: NodeIdentity,
}

impl FrontEnds for Sessions {
    fn all(&self) -> Vec<NodeIdentity> {
        vec![self.front, self.here]
    }

    fn has(&self, process: NodeIdentity) -> bool {
        process == self.front || process == self.here
    }
}

/// The processes whose requests the process that serves asks about.
#[derive(Debug)]
struct Known {
    served: Arc<ServedIndex>,
    sessions: Arc<Sessions>,
    front: Arc<RemoteNode>,
}

#[async_trait]
impl Processes for Known {
    async fn all(&self) -> Result<Vec<NodeIdentity>, Error> {
        Ok(self.served.front_ends(&*self.sessions))
    }

    fn peer(&self, process: NodeIdentity) -> Option<Arc<RemoteNode>> {
        (process == self.sessions.front).then(|| Arc::clone(&self.front))
    }
}

/// One process that serves the index. It is killed when this is dropped.
#[derive(Debug)]
struct Life {
    node: u64,
    nodes: Arc<CapacityNodes>,
    control: TaskControl,
    tasks: Tasks,
    served: Arc<ServedIndex>,
    index: Arc<IndexServer>,
    _reclaim: Arc<Reclaim>,
    /// Ends with the process.
    alive: watch::Sender<()>,
}

impl Life {
    /// Stops in order.
    async fn stop(self, clock: &dyn Clock) {
        self.served.end(clock, Duration::from_secs(5)).await;
        self.index.shutdown().await;
        self.tasks.stopping().cancel();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.control.kill();
        self.nodes.killed(self.node);
    }
}

/// An index, and what ends with its process.
type Serving = (Arc<IndexServer>, watch::Receiver<()>);

/// The lives of the process.
#[derive(Debug)]
pub(crate) struct IndexLives {
    plan: Plan,
    /// The number of the next life.
    next: Mutex<usize>,
    /// The life that serves.
    life: Mutex<Option<Life>>,
    last: Mutex<Option<Serving>>,
    /// Where front ends find the index.
    place: watch::Sender<Option<Arc<RemoteNode>>>,
}

/// Where a front end finds the index.
#[derive(Debug)]
pub(crate) struct Place(watch::Receiver<Option<Arc<RemoteNode>>>);

#[async_trait]
impl IndexPlace for Place {
    fn now(&self) -> ServedAt {
        self.0.borrow().clone().map_or(ServedAt::Nowhere, ServedAt::There)
    }

    async fn moved_from(&self, place: &ServedAt) {
        let ServedAt::There(before) = place else { return std::future::pending().await };
        let mut place = self.0.clone();
        let elsewhere = |now: &Option<Arc<RemoteNode>>| {
            now.as_ref().is_some_and(|now| !Arc::ptr_eq(now, before))
        };
        if place.wait_for(elsewhere).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Closes the groups of earlier processes, and marks what nobody has of them as gone, for ever.
async fn repair(
    clock: Arc<dyn Clock>,
    (extents, groups): (Arc<ClusterCapacity>, Arc<GroupFollower>),
    present: Present,
) {
    loop {
        clock.sleep(REPAIR_EVERY).await;
        for at in groups.all() {
            // It is tried again.
            drop(extents.repair(at.record.id(), &present).await);
        }
    }
}

impl IndexLives {
    /// Begins the first life.
    pub(crate) async fn start(plan: Plan) -> Result<Arc<Self>, String> {
        let (next, life, last) = (Mutex::new(0), Mutex::default(), Mutex::default());
        let lives = Arc::new(Self { plan, next, life, last, place: watch::Sender::default() });
        lives.begin().await?;
        Ok(lives)
    }

    pub(crate) fn place(&self) -> Place {
        Place(self.place.subscribe())
    }

    /// The index of the life that serves, or served last, and what ends when that life is killed.
    pub(crate) fn index(&self) -> Serving {
        self.last.lock().unwrap().clone().unwrap()
    }

    /// Begins the next life. The one before has ended, or stands still.
    async fn begin(&self) -> Result<(), String> {
        let number = {
            let mut next = self.next.lock().unwrap();
            *next += 1;
            *next
        };
        let node = SERVERS[number % SERVERS.len()];
        let life = self.open(node).await?;
        *self.last.lock().unwrap() = Some((Arc::clone(&life.index), life.alive.subscribe()));
        *self.life.lock().unwrap() = Some(life);
        Ok(())
    }

    async fn open(&self, node: u64) -> Result<Life, String> {
        let Plan { machine, nodes, coordinator, borders, reclaim, watch, front } = &self.plan;
        let (tasks, control) = Tasks::controlled();
        let tasks = tasks.reporting_to(&machine.env.tasks);
        let env = Env { tasks: tasks.clone(), ..machine.env.clone() };
        let Process { base, caller, capacity: extents, groups, table } =
            nodes.process(node, &env).await?;
        let identity = caller.node;
        let served = Arc::new(ServedIndex::new(identity));
        let sessions = Arc::new(Sessions { front: front.node, here: identity });
        let ends = Arc::clone(&sessions) as Arc<dyn FrontEnds>;
        let service =
            IndexService::new(Arc::clone(&served), Arc::clone(&ends), Arc::clone(&env.clock));
        nodes.serve(&caller, (INDEX_SERVICE, Arc::new(service)))?;
        // As the claim says it to front ends.
        self.place.send_replace(Some(nodes.peer(front, node)));
        let value = Bytes::copy_from_slice(&identity.incarnation.get().to_be_bytes());
        let put = [Op::Put(Bytes::from_static(CLAIM), value)];
        let claimed = match coordinator.txn(&[], &put).await {
            Ok(TxnReply::Committed(at)) => at,
            other => return Err(format!("the claim: {other:?}")),
        };
        let guard = Guarded::new(Arc::clone(coordinator), Bytes::from_static(CLAIM), claimed);
        let writers = KnownWriters::new(Arc::clone(&served), ends);
        let writers = Some(Arc::new(writers) as Arc<dyn WriterSessions>);
        let base = Base { coordinator: Arc::new(guard), writers, ..base };
        let (hosts, borders) = (vec![env.tasks.clone(); HOSTS], borders.clone());
        let capacity = Arc::clone(&base.capacity);
        let opening = env.tasks.spawn("open the index", async move {
            let boundaries = Some(borders.as_slice());
            let plan =
                IndexPlan { config: index_config(), hosts: &hosts, control: None, boundaries };
            IndexParts::open(base, plan, &mut Registry::default()).await
        });
        let parts = opening.await.map_err(|error| error.to_string())?;
        let parts = parts.map_err(|error| format!("the index does not open: {error}"))?;
        served.serve(Arc::clone(&parts.host) as Arc<dyn IndexHost>);
        let writers = [front.node.incarnation, identity.incarnation].into();
        let present = Present { table, leaving: BTreeSet::new(), writers };
        let repair =
            until_stopped(&env, repair(Arc::clone(&env.clock), (extents, groups), present));
        drop(env.tasks.spawn("repair", repair));
        let known =
            Known { served: Arc::clone(&served), sessions, front: nodes.peer(&caller, FRONT) };
        let own = LocalRequests::new(InFlight::default(), Arc::clone(&env.clock));
        let requests = ClusterRequests::shared(identity, own, Arc::new(known), env.tasks.clone());
        let watched = Arc::new(Watched { capacity, watch: watch.clone() });
        let reclaim =
            parts.reclaim(&env, reclaim.clone(), (watched, requests), &mut Registry::default());
        let (index, alive, nodes) = (parts.index, watch::Sender::default(), Arc::clone(nodes));
        Ok(Life { node, nodes, control, tasks, served, index, _reclaim: reclaim, alive })
    }

    /// Harms the process that serves while clients work, and has another one take over.
    pub(crate) async fn harm(&self, draw: &Draw, counts: &Counts) -> Infallible {
        let clock = Arc::clone(&self.plan.machine.env.clock);
        let pause =
            async |from, to| clock.sleep(Duration::from_millis(draw.between(from, to))).await;
        for _ in 0..draw.between(0, 4) {
            pause(5, 500).await;
            let life = self.life.lock().unwrap().take().unwrap();
            match draw.between(0, 6) {
                0 | 1 => {
                    counts.add("index killed", 1);
                    drop(life);
                    pause(0, 1000).await;
                    self.begin().await.unwrap();
                }
                2 => {
                    counts.add("index handed over", 1);
                    life.stop(clock.as_ref()).await;
                    self.begin().await.unwrap();
                }
                3 => {
                    counts.add("index stood still", 1);
                    life.control.pause();
                    pause(10, 3000).await;
                    life.control.resume();
                    *self.life.lock().unwrap() = Some(life);
                }
                4 => {
                    counts.add("index deposed while it stood still", 1);
                    life.control.pause();
                    pause(0, 3000).await;
                    self.begin().await.unwrap();
                    life.control.resume();
                    pause(0, 2000).await;
                    drop(life);
                }
                _ => {
                    counts.add("front end cut off from the index", 1);
                    let (front, node) = (FRONT, life.node);
                    *self.life.lock().unwrap() = Some(life);
                    let way = if draw.percent(50) { (front, node) } else { (node, front) };
                    self.plan.nodes.cut_apart(way, draw).await;
                }
            }
        }
        std::future::pending().await
    }

    /// Ends what harms the process: one serves.
    pub(crate) async fn mend(&self) -> Result<(), String> {
        for node in SERVERS {
            self.plan.nodes.join(FRONT, node);
        }
        let serves = self.life.lock().unwrap().is_some();
        if serves { Ok(()) } else { self.begin().await }
    }

    /// Stops the process in order.
    pub(crate) async fn shutdown(&self) {
        let life = self.life.lock().unwrap().take();
        if let Some(life) = life {
            life.stop(self.plan.machine.env.clock.as_ref()).await;
        }
    }
}
