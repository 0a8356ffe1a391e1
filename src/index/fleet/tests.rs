use std::sync::Arc;

use super::*;
use crate::index::api::ReadReply;
use crate::index::engine::Config;
use crate::index::engine::testing::World;
use crate::index::map::PartitionDescriptor;
use crate::types::AccountName;
use crate::types::Epoch;
use crate::types::PartitionId;

fn parts(world: &World) -> Parts {
    Parts { machine: Arc::new(crate::index::Objects), ..world.parts() }
}

fn account(name: &str, id: u64) -> Write {
    let name = AccountName::new(name).unwrap();
    Write::CreateAccount { name, id: crate::types::AccountId::new(id) }
}

async fn target(parts: &Parts, key: &[u8]) -> Target {
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    let owner = map.owner(key).unwrap();
    Target::of(owner)
}

#[tokio::test]
async fn host_keeps_accounts_over_restarts_with_any_number_of_partitions() {
    for count in [1, 16] {
        let world = World::empty();
        let config = Config { initial_partitions: count, ..world.config };
        let first = parts(&world);
        let host = Fleet::open(vec![first.clone()], config).await.unwrap();
        let map = PartitionMap::load(first.coordinator.as_ref()).await.unwrap();
        assert_eq!(map.partitions().len() as u64, count);
        let write = account("devstoreaccount1", 1);
        let at = target(&first, &write.routing_key()).await;
        host.write(at, write.clone()).await.unwrap();

        let wrong = Target { epoch: Epoch::new(at.epoch.get() + 1), ..at };
        assert_eq!(host.write(wrong, write.clone()).await, Err(Error::WrongPartition));
        let elsewhere = Target { partition: PartitionId::new(99), ..at };
        assert_eq!(host.write(elsewhere, write.clone()).await, Err(Error::WrongPartition));
        host.shutdown().await;
        assert!(matches!(host.write(at, write.clone()).await, Err(Error::Unavailable(_))));

        let second = parts(&world);
        let host = Fleet::open(vec![second.clone()], Config { initial_partitions: 3, ..config })
            .await
            .unwrap();
        let map = PartitionMap::load(second.coordinator.as_ref()).await.unwrap();
        assert_eq!(map.partitions().len() as u64, count, "the first map stays");
        let at = target(&second, &write.routing_key()).await;
        let read = Read::Account(AccountName::new("devstoreaccount1").unwrap());
        assert!(matches!(host.read(at, read).await, Ok(ReadReply::Account(_))));
        let known = world.capacity.extents_of_index();
        assert_eq!(host.owned_extents().await, known);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn host_refuses_keys_of_other_partitions() {
    let world = World::empty();
    let low = account("aaaa", 1);
    let high = account("zzzz", 2);
    let bound = RoutingKey::account(&AccountName::new("mmmm").unwrap());
    let parts = parts(&world);
    let host = Fleet::open_with(vec![parts.clone()], world.config, &[bound]).await.unwrap();
    let first = target(&parts, &low.routing_key()).await;
    let second = target(&parts, &high.routing_key()).await;
    assert_ne!(first.partition, second.partition);
    assert_eq!(host.write(first, high.clone()).await, Err(Error::WrongPartition));
    assert_eq!(host.write(second, low.clone()).await, Err(Error::WrongPartition));
    let read = Read::Account(AccountName::new("zzzz").unwrap());
    assert_eq!(host.read(first, read).await.unwrap_err(), Error::WrongPartition);
    host.write(first, low).await.unwrap();
    host.write(second, high).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn host_with_damaged_descriptor_does_not_open() {
    let world = World::empty();
    let parts = parts(&world);
    let key = PartitionDescriptor::coordinator_key(PartitionId::new(1));
    let put = crate::coordinator::Op::Put(key, b"nonsense".as_slice().into());
    parts.coordinator.txn(&[], &[put]).await.unwrap();
    let refused = Fleet::open(vec![parts], world.config).await.map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
}

#[test]
fn even_boundaries_make_a_map_of_any_size() {
    for count in [0, 1, 2, 3, 16, 100] {
        let bounds = bootstrap::even_boundaries(count);
        assert_eq!(bounds.len() as u64 + 1, count.max(1));
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
