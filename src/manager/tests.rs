//! The manager of an index server against a store in memory: here what all tests need.

mod lines;
mod loads;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::audit_log::AuditLog;
use crate::index::Dependencies;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::IndexServer;
use crate::index::PartitionMap;
use crate::index::Target;
use crate::index::Write;
use crate::index::engine::testing::World;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// A server of two hosts, not managed yet.
struct Rig {
    server: Arc<IndexServer>,
    deps: Dependencies,
}

async fn open(world: &World) -> Rig {
    open_with(world, &[]).await
}

/// The partitions of a new store lie between the borders.
async fn open_with(world: &World, borders: &[RoutingKey]) -> Rig {
    world.capacity.crash();
    let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
    let hosts = vec![deps.clone(); 2];
    let server = IndexServer::open_with(hosts, world.config, borders).await.unwrap();
    Rig { server: Arc::new(server), deps }
}

fn name(number: u64) -> AccountName {
    AccountName::new(&format!("acc{number:05}")).unwrap()
}

fn key(number: u64) -> RoutingKey {
    RoutingKey::account(&name(number))
}

fn account(number: u64) -> Write {
    Write::CreateAccount { name: name(number), id: AccountId::new(number), anonymous: false }
}

impl Rig {
    fn setup(&self, policy: Option<PolicyConfig>, audit_log: AuditLog) -> Setup {
        let (index, env) = (Arc::clone(&self.server), self.deps.env.clone());
        Setup { index, env, policy, audit_log }
    }

    /// The server has a manager from now on.
    fn manage(&self, policy: PolicyConfig) -> Manager {
        Manager::start(self.setup(Some(policy), AuditLog::default()))
    }

    async fn map(&self) -> PartitionMap {
        PartitionMap::load(self.deps.coordinator.as_ref()).await.unwrap()
    }

    /// Sends a write where the map says, again when that has changed.
    async fn write(&self, write: Write) {
        loop {
            let map = self.map().await;
            let target = Target::of(map.owner(&write.routing_key()).unwrap());
            match self.server.write(target, write.clone()).await {
                Err(Error::WrongPartition) => {}
                answer => break drop(answer.unwrap()),
            }
        }
    }

    async fn write_all(&self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.write(account(number)).await;
        }
    }

    /// The partition that serves an account, as the server has it: the coordinator is not asked.
    fn serving(&self, number: u64) -> PartitionId {
        let status = self.server.status();
        status.iter().find(|one| one.range.contains(key(number).as_bytes())).unwrap().id
    }

    /// The hosts that serve something.
    fn busy_hosts(&self) -> BTreeSet<u64> {
        self.server.status().iter().map(|one| one.host.number()).collect()
    }

    async fn has(&self, number: u64) -> bool {
        let map = self.map().await;
        let target = Target::of(map.owner(key(number).as_bytes()).unwrap());
        match self.server.read(target, crate::index::Read::Account(name(number))).await {
            Ok(crate::index::ReadReply::Account(found)) => found.id == AccountId::new(number),
            Err(Error::Refused(crate::index::api::Refused::AccountNotFound)) => false,
            other => panic!("{other:?}"),
        }
    }

    /// Everything of the numbers is there, and nothing of the next one is.
    async fn check(&self, written: std::ops::Range<u64>) {
        for number in written.clone() {
            assert!(self.has(number).await, "{number} is lost");
        }
        assert!(!self.has(written.end).await);
    }

    async fn sleep(&self, time: Duration) {
        self.deps.env.clock.sleep(time).await;
    }

    /// As a node does.
    async fn stop(&self, manager: Manager) {
        manager.stop().await;
        self.server.shutdown().await;
    }
}
