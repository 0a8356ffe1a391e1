//! Changes of the map while hosts, and what changes the map, have threads of their own: the
//! simulation has one thread only.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::future::join_all;

use super::*;
use crate::env::Env;
use crate::env::Rand;
use crate::env::SeededRand;
use crate::env::Tasks;
use crate::index::api::Damage;
use crate::index::api::Guard;
use crate::index::api::WriteReply;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Revision;

const KEYS: usize = 120;
const WRITERS: usize = 4;
const CHANGES: u64 = 150;

/// Every write of a key adds one to its number, in two rows, of which one is gone at every fourth.
/// Questions are answered by errors that hold the number.
#[derive(Debug)]
struct Numbers;

async fn number(view: &dyn Rows, key: &[u8]) -> Result<u64, Error> {
    let of = |row: Option<bytes::Bytes>| {
        row.map_or(0, |row| u64::from_be_bytes(row[..8].try_into().expect("eight bytes")))
    };
    let number = of(view.get(Family::Versions, key).await?);
    let twin = of(view.get(Family::Main, key).await?);
    let whole = twin == if number % 4 == 3 { 0 } else { number };
    if whole {
        Ok(number)
    } else {
        Err(Error::Corrupt(Damage::Rows(format!("{number} and {twin}"))))
    }
}

#[async_trait]
impl Machine for Numbers {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        _: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        let Write::ForgetTagWork { rows } = write else {
            return Err(Error::Refused(Refused::AccountNotFound));
        };
        let key = rows[0].clone();
        let number = number(view, &key).await? + 1;
        let row = [&number.to_be_bytes(), [7; 100].as_slice()].concat();
        out.put(Family::Versions, key.clone(), row.clone());
        if number % 4 == 3 {
            out.delete(Family::Main, key);
        } else {
            out.put(Family::Main, key, row);
        }
        Ok(WriteReply::Layer(number))
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        _: &KeyRange,
        read: &Read,
        _: Timestamp,
    ) -> Result<ReadReply, Error> {
        let Read::BlockList(blob, ..) = read else {
            return Err(Error::Refused(Refused::AccountNotFound));
        };
        let number = number(view, RoutingKey::blob(blob).as_bytes()).await?;
        Err(Error::Unavailable(number.to_string()))
    }
}

fn blob(key: usize) -> BlobKey {
    let name = BlobName::new(&format!("k{key:04}")).unwrap();
    let (account, container) = (AccountId::new(1), ContainerId::new(5));
    BlobKey { account, container, collation: Collation::Utf8, name }
}

fn routing(key: usize) -> RoutingKey {
    RoutingKey::blob(&blob(key))
}

/// What all threads have in common.
struct Common {
    rig: Rig,
    map: RwLock<Arc<PartitionMap>>,
    /// Of each key: the number of the last write that was begun, and of the last that was answered.
    begun: Vec<AtomicU64>,
    done: Vec<AtomicU64>,
    ends: AtomicBool,
}

impl Common {
    fn target(&self, key: usize) -> Target {
        Target::of(self.map.read().unwrap().owner(routing(key).as_bytes()).unwrap())
    }

    /// The map is stale.
    async fn follow(&self) {
        let map = self.rig.map().await;
        *self.map.write().unwrap() = Arc::new(map);
        self.pause().await;
    }

    async fn pause(&self) {
        self.rig.deps.env.clock.sleep(Duration::from_micros(200)).await;
    }

    async fn write(&self, key: usize) {
        let before = self.done[key].load(Ordering::SeqCst);
        self.begun[key].store(before + 1, Ordering::SeqCst);
        let write = Write::ForgetTagWork { rows: vec![routing(key).as_bytes().clone()] };
        loop {
            match self.rig.host.write(self.target(key), write.clone()).await {
                Ok(WriteReply::Layer(number)) => {
                    assert_eq!(number, before + 1, "key {key}");
                    return self.done[key].store(number, Ordering::SeqCst);
                }
                Err(Error::WrongPartition) => self.follow().await,
                // Nothing was begun: memtables are full.
                Err(Error::Overloaded) => return self.pause().await,
                other => panic!("key {key}: {other:?}"),
            }
        }
    }

    async fn read(&self, key: usize) -> u64 {
        loop {
            let read = Read::BlockList(blob(key), Revision::Current, Guard::default());
            match self.rig.host.read(self.target(key), read).await {
                Err(Error::Unavailable(number)) => return number.parse().unwrap(),
                Err(Error::WrongPartition) => self.follow().await,
                other => panic!("key {key}: {other:?}"),
            }
        }
    }

    /// Writes some of the keys that are its own, several at a time, so that others queue behind
    /// them.
    async fn keep_writing(&self, writer: usize) {
        let rand = SeededRand::new(writer as u64);
        while !self.ends.load(Ordering::SeqCst) {
            let own = (writer..KEYS).step_by(WRITERS).filter(|_| rand.below(4) == 0);
            join_all(own.map(|key| self.write(key))).await;
        }
    }

    /// What was answered before a read it sees, and nothing that was not begun.
    async fn keep_reading(&self) {
        let rand = SeededRand::new(77);
        while !self.ends.load(Ordering::SeqCst) {
            let key = usize::try_from(rand.below(KEYS as u64)).unwrap();
            let done = self.done[key].load(Ordering::SeqCst);
            let seen = self.read(key).await;
            let begun = self.begun[key].load(Ordering::SeqCst);
            assert!((done..=begun).contains(&seen), "key {key}: {done}, {seen}, {begun}");
            self.pause().await;
        }
    }

    /// Any change of any partition.
    async fn change(&self, rand: &SeededRand) -> Result<Changed, ChangeError> {
        let below = |end: usize| usize::try_from(rand.below(end as u64)).unwrap();
        let server = &self.rig.host;
        let status = server.status();
        let place = below(status.len().max(1));
        let Some(one) = status.get(place) else { return Err(ChangeError::NoSuchPartition) };
        match below(8) {
            0 | 1 if status.len() < 20 => server.split(one.id, &[routing(below(KEYS))]).await,
            2 if status.len() < 20 => server.stripe(one.id, 3).await,
            3 | 4 => server.move_to(one.id, HostId::new(1 - one.host.number())).await,
            _ => {
                let same = status.iter().filter(|other| other.range == one.range);
                let next = status.iter().skip(place).take(2);
                let ids: Vec<_> = match one.stripe {
                    Some(_) => same.map(|stripe| stripe.id).collect(),
                    None => next.map(|neighbour| neighbour.id).collect(),
                };
                server.merge(&ids).await
            }
        }
    }

    async fn keep_changing(&self) {
        let rand = SeededRand::new(5);
        while self.rig.host.changes_after(CHANGES - 1).is_empty() {
            if let Err(ChangeError::Refused(error) | ChangeError::Failed(error)) =
                self.change(&rand).await
            {
                panic!("{error:?}");
            }
            self.pause().await;
        }
        self.ends.store(true, Ordering::SeqCst);
    }
}

async fn start(world: &World, threads: &[Tasks; 3]) -> Common {
    let [hosts @ .., control] = threads;
    let deps = Dependencies { machine: Arc::new(Numbers), ..world.deps() };
    let on = |tasks: &Tasks| Env { tasks: tasks.clone(), ..deps.env.clone() };
    let hosts = hosts.iter().map(|tasks| Dependencies { env: on(tasks), ..deps.clone() });
    let range = RoutingKey::container_range(blob(0).account, blob(0).container);
    let borders: Vec<_> = [range.low().clone()].into_iter().chain(range.high().cloned()).collect();
    let server = IndexServer::open_with(hosts.collect(), world.config, &borders).await.unwrap();
    let rig = Rig { deps, host: Arc::new(server.controlled_by(control.clone())) };
    let map = RwLock::new(Arc::new(rig.map().await));
    let zeros = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    Common { rig, map, begun: zeros(), done: zeros(), ends: AtomicBool::new(false) }
}

#[tokio::test]
async fn nothing_is_lost_or_left_behind_on_several_threads() {
    let mut world = World::empty();
    world.config.memtable_bytes_max = 128 << 10;
    world.config.log_extent_bytes = 40 << 10;
    let threads = ["one", "two", "control"].map(|name| Tasks::on_own_thread(name).unwrap());
    let common = start(&world, &threads).await;
    let writers = join_all((0..WRITERS).map(|writer| common.keep_writing(writer)));
    tokio::join!(writers, common.keep_reading(), common.keep_changing());
    for key in 0..KEYS {
        assert_eq!(common.read(key).await, common.done[key].load(Ordering::SeqCst));
    }
    let kinds = common.rig.host.changes_after(0).into_iter().map(|event| (event.kind.word(), ()));
    assert_eq!(kinds.collect::<BTreeMap<_, _>>().len(), 5, "each kind of change happened");
    common.rig.tidy().await;
    common.rig.host.shutdown().await;
    for tasks in &threads {
        tasks.shutdown().await;
    }
    common.rig.do_chores().await;
    let mut named = BTreeSet::new();
    for partition in common.rig.all() {
        let sources = partition.core.published().sources;
        named.extend(sources.entries().iter().map(|run| run.footer.extent));
    }
    named.extend(common.rig.map().await.partitions().iter().flat_map(|part| part.log.clone()));
    let named: Vec<_> = named.into_iter().collect();
    assert_eq!(world.capacity.extents_of_index(), named, "and nothing else");
}
