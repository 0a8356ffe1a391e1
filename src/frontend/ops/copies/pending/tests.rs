//! Copies behind a partition that is out of service, and copies that panic.

use async_trait::async_trait;

use super::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::env::Tasks;
use crate::frontend::testing::env;
use crate::frontend::testing::publish;
use crate::index::IndexHost;
use crate::index::PartitionDescriptor;
use crate::index::Target;
use crate::index::WriteReply;
use crate::types::ExtentId;
use crate::types::KeyRange;
use crate::types::PartitionKeys;
use crate::types::Secret;
use crate::types::Stripe;

/// Partitions with one copy pending each, for the account of the partition's number; some are out
/// of service.
#[derive(Debug)]
struct Host {
    partitions: Vec<PartitionDescriptor>,
    out: Vec<u64>,
}

fn pending_in(number: u64) -> PendingCopy {
    let job = CopyJob {
        id: Uuid::from_u128(number.into()),
        source: Secret::Sealed(Bytes::from_static(b"source")),
        etag: None,
        md5: None,
        crc64: None,
    };
    let blob = RoutingKey::from_bytes(position(AccountId::new(number)));
    PendingCopy { blob, job }
}

#[async_trait]
impl IndexHost for Host {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, index::Error> {
        let Read::CopyJobs { from, .. } = read else { panic!("another question") };
        let number = target.partition.get();
        if self.out.contains(&number) {
            return Err(index::Error::Quarantined(target.partition));
        }
        let one = pending_in(number);
        let found = (*one.blob.as_bytes() >= from).then_some(one);
        let here = self.partitions.iter().find(|one| one.id == target.partition).unwrap();
        let next = here.keys.range().high().map(|high| high.as_bytes().clone());
        Ok(ReadReply::CopyJobs(found.into_iter().collect(), next))
    }

    async fn write(&self, _: Target, _: Write) -> Result<WriteReply, index::Error> {
        panic!("nothing is written")
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

/// A router over partitions with these keys, numbered from 1.
async fn router(keys: Vec<PartitionKeys>, out: &[u64]) -> Router {
    let env = env();
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
    let mut partitions = Vec::new();
    for (number, keys) in (1..).zip(keys) {
        partitions.push(publish(coordinator.as_ref(), (number, 1), keys).await);
    }
    let host = Arc::new(Host { partitions, out: out.to_vec() });
    Router::new(host, coordinator, env).await.unwrap()
}

/// The accounts whose copies are found in one look, and the partitions it went on without.
async fn found(router: &Router) -> (Vec<u64>, Vec<u64>) {
    let mut look = Look::default();
    let mut accounts = Vec::new();
    while let Some((account, _)) = next_account(router, &mut look).await.unwrap() {
        accounts.push(account.get());
        look.turn = position(AccountId::new(account.get() + 1));
    }
    (accounts, look.missed.iter().map(|id| id.get()).collect())
}

/// Each has the keys of the account of its number, the last those above too.
fn ranges(count: u64) -> Vec<PartitionKeys> {
    let key = |number: u64| match number {
        1 => RoutingKey::min(),
        number => RoutingKey::from_bytes(position(AccountId::new(number))),
    };
    let high = |number: u64| (number < count).then(|| key(number + 1));
    (1..=count).map(|number| KeyRange::new(key(number), high(number)).into()).collect()
}

#[tokio::test(start_paused = true)]
async fn copies_behind_a_partition_out_of_service_are_found() {
    assert_eq!(found(&router(ranges(4), &[]).await).await, (vec![1, 2, 3, 4], vec![]));
    assert_eq!(found(&router(ranges(4), &[2]).await).await, (vec![1, 3, 4], vec![2]));
    assert_eq!(found(&router(ranges(4), &[1, 4]).await).await, (vec![2, 3], vec![1, 4]));
}

#[tokio::test(start_paused = true)]
async fn copies_of_healthy_stripes_are_found() {
    let stripes = Stripe::all(3).map(|one| PartitionKeys::striped(KeyRange::all(), one));
    let router = router(stripes.collect(), &[2]).await;
    assert_eq!(found(&router).await, (vec![1, 3], vec![2]));
}

#[tokio::test]
async fn copy_that_panics_gives_its_place_back() {
    let copies = Arc::new(Copies::default());
    let (id, account) = (Uuid::from_u128(7), AccountId::new(1));
    let place = copies.take_up(id, account).unwrap();
    assert!(copies.take_up(id, account).is_none(), "it is in hand");
    let task = Tasks::new().spawn("copy", async move {
        let _place = place;
        panic!("as told");
    });
    let ended: Result<(), _> = task.await;
    assert!(ended.is_err());
    assert!(copies.panicked.load(Ordering::Relaxed), "it is not begun anew at once");
    let again = copies.take_up(id, account);
    assert!(again.is_some(), "its place is free again");
    copies.wake.notified().await;
}
