//! Partitions of several processes are shown and changed from each of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::rig::Partition;
use super::rig::Process;
use super::rig::World;
use super::rig::target_at;
use crate::coordinator::Coordinator;
use crate::coordinator::Event;
use crate::coordinator::Follows;
use crate::coordinator::Revision;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::Tasks;
use crate::index::ChangeError;
use crate::index::Changed;
use crate::index::ChangesOf;
use crate::index::Counts;
use crate::index::Error;
use crate::index::FollowedMap;
use crate::index::IndexHost;
use crate::index::KnownChanges;
use crate::index::PartitionControl;
use crate::index::PartitionCounts;
use crate::index::PartitionDescriptor;
use crate::index::PartitionStatus;
use crate::index::Plan;
use crate::index::ReadReply;
use crate::index::ServedPartitions;
use crate::index::Target;
use crate::index::remote::ClusterPartitions;
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// A partition with different numbers in all fields.
pub(super) fn status(id: u64, range: KeyRange, host: HostId) -> PartitionStatus {
    PartitionStatus {
        id: PartitionId::new(id),
        epoch: Epoch::new(2),
        host,
        range,
        stripe: None,
        counts: Counts {
            reads: 1,
            writes: 2,
            lists: 3,
            refused: 4,
            log_bytes: 5,
            cpu: Duration::from_nanos(6),
        },
        queue_age: Duration::from_nanos(7),
        rows: 8,
        run_bytes: 9,
        memtable_bytes: 10,
        log_extents: 11,
        quarantined: false,
        stopped: Some("x".to_owned()),
    }
}

fn key(text: &'static str) -> RoutingKey {
    RoutingKey::from_bytes(Bytes::from_static(text.as_bytes()))
}

/// What the partition with this number has of the keys, of three.
fn range(id: u64) -> KeyRange {
    match id {
        1 => KeyRange::new(key(""), Some(key("g"))),
        2 => KeyRange::new(key("g"), Some(key("p"))),
        _ => KeyRange::new(key("p"), None),
    }
}

fn host(node: u64) -> HostId {
    HostId::of(NodeId::new(node), 0)
}

/// The partitions of a process, which carries out nothing but moves.
#[derive(Debug)]
struct Few {
    node: u64,
    all: Mutex<BTreeMap<u64, PartitionStatus>>,
    asked: Arc<Mutex<Vec<(u64, Plan)>>>,
    map: Arc<FollowedMap>,
}

#[async_trait]
impl PartitionControl for Few {
    async fn served(&self) -> Result<ServedPartitions, Error> {
        let partitions = self.all.lock().unwrap().values().cloned().collect();
        Ok(ServedPartitions { hosts: vec![host(self.node)], partitions })
    }

    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error> {
        let of = |one: &PartitionStatus| PartitionCounts {
            id: one.id,
            host: one.host,
            range: one.range.clone(),
            stripe: None,
            requests: self.node,
            cpu: Duration::ZERO,
        };
        Ok(self.all.lock().unwrap().values().map(of).collect())
    }

    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error> {
        let process = super::rig::identity(self.node, 1);
        assert_eq!(known.get(&process), Some(&7));
        Ok(vec![ChangesOf { process, changes: Vec::new() }])
    }

    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let is_here = self.all.lock().unwrap().contains_key(&partition.get());
        if is_here { Ok(vec![key("c"); parts]) } else { Err(ChangeError::NoSuchPartition) }
    }

    async fn row_spread(
        &self,
        _range: &KeyRange,
        _parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let all = self.all.lock().unwrap();
        Ok(all.values().map(|one| (one.range.low().clone(), self.node)).collect())
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        self.asked.lock().unwrap().push((self.node, plan.clone()));
        if let Plan::Move(id, to) = plan {
            self.all.lock().unwrap().remove(&id.get()).ok_or(ChangeError::NoSuchPartition)?;
            put(&self.map, id.get(), to.node().get());
        }
        Ok(Changed { partitions: Vec::new(), pause: Duration::from_millis(3) })
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        let plan = Plan::Move(target.partition, to);
        self.asked.lock().unwrap().push((self.node, plan));
        Ok(())
    }

    fn node_name(&self, _node: NodeId) -> Option<String> {
        None
    }
}

/// The map has a partition at a node from now on.
fn put(map: &FollowedMap, id: u64, node: u64) {
    let (id, keys) = (PartitionId::new(id), range(id).into());
    let one =
        PartitionDescriptor { id, keys, epoch: Epoch::new(2), log: Vec::new(), host: host(node) };
    let (key, value) = (PartitionDescriptor::coordinator_key(id), Some(one.encode()));
    map.take(vec![Event { key, value, revision: Revision(map.revision().0 + 1) }]);
}

struct Rig {
    world: World,
    map: Arc<FollowedMap>,
    /// The processes of nodes 1 and 2, which serve partitions 1 and 2, and of node 3, which has
    /// only a front end.
    processes: Vec<Process>,
    asked: Arc<Mutex<Vec<(u64, Plan)>>>,
}

impl Rig {
    async fn new() -> Self {
        let (world, asked) = (World::new(), Arc::<Mutex<Vec<_>>>::default());
        let rand = Arc::new(SeededRand::new(1));
        let env = Env { clock: world.clock.clone(), rand, tasks: Tasks::new() };
        let coordinator = SimulatedStore::new().open(&env);
        let map = FollowedMap::start(&coordinator as &dyn Coordinator).await.unwrap();
        let map = Arc::new(map);
        let processes: Vec<Process> = (1..4).map(|node| Process::start(&world, node, 1)).collect();
        world.serve_at(&[1, 2]);
        for (process, node) in processes.iter().zip([1, 2]) {
            let own = status(node, range(node), host(node));
            let all = Mutex::new(BTreeMap::from([(node, own)]));
            let (asked, map) = (Arc::clone(&asked), Arc::clone(&map));
            put(&map, node, node);
            process.served.control_through(Arc::new(Few { node, all, asked, map }));
            let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
            process.served.serve(partition as Arc<dyn IndexHost>);
        }
        put(&map, 3, 2);
        Self { world, map, processes, asked }
    }

    fn from(&self, process: usize) -> ClusterPartitions {
        let index = Arc::clone(&self.processes[process].index);
        ClusterPartitions::new(index, Arc::clone(&self.map), Tasks::new())
    }

    fn asked(&self) -> Vec<(u64, Plan)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn partitions_of_all_processes_are_shown_from_each() {
    let rig = Rig::new().await;
    for from in 0..3 {
        let from = rig.from(from);
        let ServedPartitions { hosts, partitions } = from.served().await.unwrap();
        assert_eq!(hosts, [host(1), host(2)]);
        assert_eq!(partitions[..2], [1, 2].map(|id| status(id, range(id), host(id))));
        // Its process does not show it.
        let last = &partitions[2];
        assert_eq!((last.id.get(), last.host, partitions.len()), (3, host(2), 3));
        assert!(last.stopped.as_ref().unwrap().contains("does not answer"));
        let counts = from.counts().await.unwrap();
        let counts: Vec<_> = counts.iter().map(|one| (one.id.get(), one.requests)).collect();
        assert_eq!(counts, [(1, 1), (2, 2)]);
        let known = [1, 2].map(|node| (super::rig::identity(node, 1), 7));
        assert_eq!(from.changes(&known.into()).await.unwrap().len(), 2);
        let spread = from.row_spread(&KeyRange::all(), 2).await.unwrap();
        assert_eq!(spread, [(key(""), 1), (key("g"), 2)]);
        let cuts = from.even_cuts(PartitionId::new(2), 2).await.unwrap();
        assert_eq!(cuts, [key("c"), key("c")]);
        assert_eq!(from.node_name(NodeId::new(2)).unwrap(), "node-2");
    }
    // Who is not answered shows the map.
    let before = rig.from(2);
    let was = before.served().await.unwrap();
    rig.world.end_session(rig.processes[2].identity);
    let served = rig.from(2).served().await.unwrap().partitions;
    assert!(served.iter().all(|one| one.stopped.is_some() && one.rows == 0), "{served:?}");
    // Or what was answered before. A rate would be that of all time, if a count began at zero.
    let served = before.served().await.unwrap();
    assert_eq!(served, was);
    assert_eq!(before.counts().await.unwrap().len(), 0, "nobody has asked before");
}

#[tokio::test(start_paused = true)]
async fn partition_is_changed_by_its_process_from_each() {
    let rig = Rig::new().await;
    let (one, two, three) = (PartitionId::new(1), PartitionId::new(2), PartitionId::new(3));
    for from in 0..3 {
        let split = Plan::Split(two, vec![key("h")]);
        rig.from(from).change(split.clone()).await.unwrap();
        assert_eq!(rig.asked(), [(2, split)]);
    }
    // Those that are not side by side are not moved either.
    let apart = rig.from(2).change(Plan::Merge(vec![one, three])).await;
    assert_eq!((apart, rig.asked()), (Err(ChangeError::NotNeighbours), Vec::new()));
    let nowhere = rig.from(2).change(Plan::Move(one, host(3))).await;
    assert_eq!((nowhere, rig.asked()), (Err(ChangeError::NoSuchHost), Vec::new()));
    let unknown = rig.from(2).change(Plan::SplitEvenly(PartitionId::new(9), 2)).await;
    assert_eq!(unknown, Err(ChangeError::NoSuchPartition));
    // The second is moved to the process of the first.
    let both = Plan::Merge(vec![one, two]);
    let merged = rig.from(2).change(both.clone()).await.unwrap();
    assert_eq!(merged.pause, Duration::from_millis(3));
    let moved = Plan::Move(two, host(1));
    // The new process is asked too: it may have opened it on another host of its own.
    assert_eq!(rig.asked(), [(2, moved.clone()), (1, moved), (1, both)]);
}

#[tokio::test(start_paused = true)]
async fn processes_with_a_session_have_partitions_given_away_the_own_one_too() {
    let rig = Rig::new().await;
    for from in [0, 2] {
        rig.from(from).give(target_at(1), host(2)).await.unwrap();
        assert_eq!(rig.asked(), [(1, Plan::Move(PartitionId::new(1), host(2)))]);
    }
    rig.world.end_session(rig.processes[2].identity);
    assert!(rig.from(2).give(target_at(1), host(2)).await.is_err());
    rig.world.serve_at(&[2]);
    assert!(rig.from(0).give(target_at(1), host(2)).await.is_err(), "it has no claim");
    assert_eq!(rig.asked(), []);
}
