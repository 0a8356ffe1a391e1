//! Changes of the map, against a store in memory: here what all of them need.

mod failures;
mod merges;
mod moves;
mod panics;
mod reopens;
mod rewrites;
mod splits;
mod threads;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Refused;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::engine::Dependencies;
use crate::index::engine::testing::{Fault, When, World};
use crate::index::map::PartitionMap;
use crate::types::AccountId;
use crate::types::AccountName;

struct Rig {
    deps: Dependencies,
    host: Arc<IndexServer>,
}

async fn open(world: &World) -> Rig {
    world.capacity.crash();
    let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
    let host = Arc::new(IndexServer::open(vec![deps.clone(); 2], world.config).await.unwrap());
    Rig { deps, host }
}

/// A server with one row and a disk that has failed since that call of a move on. The move may have
/// left the partition closed.
async fn after_a_move_that_fails_from(call: usize, world: &World) -> Rig {
    let rig = open(world).await;
    rig.write(1).await;
    let fails = Fault::Refused(crate::capacity::Error::Ended { doing: "test" });
    world.capacity.fail(When::From(call), fails);
    drop(rig.host.move_to(rig.serving(1), HostId::new(1)).await);
    rig
}

impl Rig {
    fn all(&self) -> Vec<Arc<Partition>> {
        self.host.hosts.iter().flat_map(|host| host.opened.all()).collect()
    }

    /// Has nothing left to flush, to compact or to remove.
    async fn tidy(&self) {
        for partition in self.all() {
            partition.flush().await.unwrap();
            while partition.compact().await.unwrap() {}
        }
        self.do_chores().await;
    }

    async fn do_chores(&self) {
        for host in &self.host.hosts {
            host.context.do_chores().await;
        }
    }

    async fn map(&self) -> PartitionMap {
        PartitionMap::load(self.deps.coordinator.as_ref()).await.unwrap()
    }

    async fn target(&self, name: &AccountName) -> Target {
        let map = self.map().await;
        let owner = map.owner(RoutingKey::account(name).as_bytes()).unwrap();
        Target::of(owner)
    }

    async fn write(&self, number: u64) {
        let target = self.target(&name(number)).await;
        let write = Write::CreateAccount {
            name: name(number),
            id: AccountId::new(number),
            anonymous: false,
        };
        self.host.write(target, write).await.unwrap();
    }

    async fn write_all(&self, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            self.write(number).await;
        }
    }

    async fn has(&self, number: u64) -> bool {
        let target = self.target(&name(number)).await;
        match self.host.read(target, Read::Account(name(number))).await {
            Ok(ReadReply::Account(found)) => {
                assert_eq!(found.id, AccountId::new(number));
                true
            }
            Err(Error::Refused(Refused::AccountNotFound)) => false,
            other => panic!("{other:?}"),
        }
    }

    async fn split(&self, at: &[u64]) -> Changed {
        let target = self.target(&name(at[0])).await;
        let keys: Vec<_> = at.iter().map(|&n| RoutingKey::account(&name(n))).collect();
        self.host.split(target.partition, &keys).await.unwrap()
    }

    async fn merge_all(&self) -> Changed {
        let map = self.map().await;
        let all: Vec<_> = map.partitions().iter().map(|partition| partition.id).collect();
        self.host.merge(&all).await.unwrap()
    }

    /// Everything of `written` is there, nothing of the next number is, and the map tiles.
    async fn check(&self, written: u64) {
        for number in 1..=written {
            assert!(self.has(number).await, "{number} is lost");
        }
        assert!(!self.has(written + 1).await);
    }
}

fn name(number: u64) -> AccountName {
    AccountName::new(&format!("acc{number:05}")).unwrap()
}

/// A change of the map, of a store with two partitions.
#[derive(Clone, Copy, Debug)]
enum Change {
    Split,
    Merge,
    Move,
}

impl Rig {
    /// The partition that serves an account, as the server has it: the coordinator is not asked.
    fn serving(&self, number: u64) -> PartitionId {
        let key = RoutingKey::account(&name(number));
        let status = self.host.status();
        status.iter().find(|one| one.range.contains(key.as_bytes())).unwrap().id
    }

    async fn change(&self, change: Change) -> Result<Changed, ChangeError> {
        let first = self.serving(1);
        match change {
            Change::Split => self.host.split(first, &[RoutingKey::account(&name(5))]).await,
            Change::Merge => {
                let second = self.serving(20);
                self.host.merge(&[first, second]).await
            }
            Change::Move => self.host.move_to(first, HostId::new(1)).await,
        }
    }
}
