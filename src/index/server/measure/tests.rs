use super::*;
use crate::index::api::IndexHost;
use crate::index::api::ListAccounts;
use crate::index::api::Read;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::engine::Dependencies;
use crate::index::engine::testing::World;
use crate::index::map::PartitionMap;
use crate::index::server::IndexServer;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::RoutingKey;

const TICK: Duration = Duration::from_millis(250);

struct Rig {
    server: Arc<IndexServer>,
    deps: Dependencies,
}

async fn open() -> Rig {
    let world = World::empty();
    let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
    let hosts = vec![deps.clone(); 2];
    Rig { server: Arc::new(IndexServer::open(hosts, world.config).await.unwrap()), deps }
}

fn name(number: u64) -> AccountName {
    AccountName::new(&format!("acc{number:05}")).unwrap()
}

fn key(number: u64) -> RoutingKey {
    RoutingKey::account(&name(number))
}

impl Rig {
    async fn target(&self, key: &[u8]) -> Target {
        let map = PartitionMap::load(self.deps.coordinator.as_ref()).await.unwrap();
        Target::of(map.owner(key).unwrap())
    }

    /// Sends a write where the map says, again when that has changed.
    async fn write(&self, number: u64) {
        let write = Write::CreateAccount {
            name: name(number),
            id: AccountId::new(number),
            anonymous: false,
        };
        loop {
            let target = self.target(key(number).as_bytes()).await;
            match self.server.write(target, write.clone()).await {
                Err(crate::index::Error::WrongPartition) => {}
                done => break drop(done.unwrap()),
            }
        }
    }

    async fn read(&self, number: u64) {
        let target = self.target(key(number).as_bytes()).await;
        self.server.read(target, Read::Account(name(number))).await.unwrap();
    }

    async fn list(&self) {
        let list = ListAccounts { from: None, limit: 10 };
        let target = self.target(&list.position()).await;
        self.server.read(target, Read::Accounts(list)).await.unwrap();
    }

    fn take(&self, sample: &mut LoadSample, at: Duration) {
        sample.follow(self.opened());
        sample.take(at, &BTreeSet::new());
    }

    fn opened(&self) -> Vec<(Arc<Partition>, HostId)> {
        let all = self.server.hosts.iter();
        let of = |host: &crate::index::server::host::Host| {
            let id = host.context.host;
            host.opened.all().into_iter().map(move |partition| (partition, id)).collect::<Vec<_>>()
        };
        all.flat_map(of).collect()
    }
}

#[tokio::test]
async fn loads_are_rates_by_class_since_the_last_look_also_over_a_move() {
    let rig = open().await;
    let mut sample = LoadSample::new(Duration::ZERO, vec![HostId::new(0), HostId::new(1)]);
    for number in 0..5 {
        rig.write(number).await;
    }
    rig.take(&mut sample, TICK);
    for number in 0..3 {
        rig.write(number + 10).await;
        rig.read(number).await;
        rig.list().await;
        rig.list().await;
    }
    rig.take(&mut sample, TICK * 2);
    let [of] = &sample.report().partitions[..] else { panic!("one partition") };
    assert_eq!((of.load.reads, of.load.writes, of.load.lists), (12.0, 12.0, 24.0));
    assert!(of.load.log_bytes > 12.0 * 40.0, "{:?}", of.load);
    assert_eq!((of.load.refused, of.host), (0.0, HostId::new(0)));

    assert_eq!(sample.added.requests(), 12);
    rig.list().await;
    rig.server.move_to(of.id, HostId::new(1)).await.unwrap();
    rig.read(1).await;
    rig.take(&mut sample, TICK * 3);
    let [of] = &sample.report().partitions[..] else { panic!("one partition") };
    assert_eq!((of.load.requests(), of.host), (4.0, HostId::new(1)));
    let added = sample.added;
    assert_eq!((added.reads, added.lists), (1, 1), "all that was done, before the move too");
    let status = &rig.server.status()[0];
    assert_eq!((status.counts.reads, status.counts.writes), (1, 0), "counted anew");
    rig.server.shutdown().await;
}

#[tokio::test]
async fn of_shared_runs_each_partition_counts_its_part() {
    let rig = open().await;
    for number in 0..3_000 {
        rig.write(number).await;
    }
    rig.server.flush().await.unwrap();
    let only = rig.server.status()[0].id;
    rig.server.split(only, &[key(750), key(1_500)]).await.unwrap();
    let sizes: Vec<_> = rig.opened().iter().map(|(p, _)| p.core.own_size()).collect();
    let all = rig.opened()[0].0.core.run_size();
    // To a block, of which there are nine.
    let near = |is: u64, all: u64, quarters: u64| is.abs_diff(all * quarters / 4) <= all / 8;
    for (RunSize { rows, bytes }, quarters) in sizes.into_iter().zip([1, 1, 2]) {
        let both = near(rows, all.rows, quarters) && near(bytes, all.bytes, quarters);
        assert!(both, "{quarters} quarters of {all:?} are {rows} rows and {bytes} bytes");
    }
    rig.server.shutdown().await;
}
