//! Copies behind a partition that is out of service, and copies that panic.

mod leases;

use async_trait::async_trait;

use super::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::index::CopyJobPage;
use crate::index::IndexHost;
use crate::index::PartitionDescriptor;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::client::testing::env;
use crate::index::client::testing::publish;
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
    refusal: fn(PartitionId) -> index::Error,
}

fn pending_in(number: u64) -> PendingCopy {
    let job = CopyJob {
        id: Uuid::from_u128(number.into()),
        source: Secret::Sealed(Bytes::from_static(b"source")),
        etag: None,
        md5: None,
        crc64: None,
        lease: None,
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
            return Err((self.refusal)(target.partition));
        }
        let one = pending_in(number);
        let found = (*one.blob.as_bytes() >= from).then_some(one);
        let here = self.partitions.iter().find(|one| one.id == target.partition).unwrap();
        let next = here.keys.range().high().map(|high| high.as_bytes().clone());
        Ok(ReadReply::CopyJobs(CopyJobPage { jobs: found.into_iter().collect(), next }))
    }

    async fn write_shared(&self, _: Target, _: Arc<Write>) -> Result<WriteReply, index::Error> {
        panic!("nothing is written")
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

/// A router over partitions with these keys, numbered from 1.
async fn router(keys: Vec<PartitionKeys>, out: &[u64]) -> Router {
    refusing(keys, out, |it| index::Error::Corrupt(index::Damage::Quarantined(it))).await
}

/// The same, with how those that are out refuse.
async fn refusing(
    keys: Vec<PartitionKeys>,
    out: &[u64],
    refusal: fn(PartitionId) -> index::Error,
) -> Router {
    let env = env();
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
    let mut partitions = Vec::new();
    for (number, keys) in (1..).zip(keys) {
        partitions.push(publish(coordinator.as_ref(), (number, 1), keys).await);
    }
    let host = Arc::new(Host { partitions, out: out.to_vec(), refusal });
    Router::new(host, coordinator, env).await.unwrap()
}

/// The accounts whose copies are found in one scan, and the partitions it went on without.
async fn found(router: &Router) -> (Vec<u64>, Vec<u64>) {
    let mut scan = Scan::default();
    let mut accounts = Vec::new();
    while let Some(AccountCopies { account, .. }) = next_account(router, &mut scan).await.unwrap() {
        accounts.push(account.get());
        scan.turn = position(AccountId::new(account.get() + 1));
    }
    (accounts, scan.missed.iter().map(|id| id.get()).collect())
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

/// A partition that serves may refuse what lies on a damaged run or a lost disk.
#[tokio::test(start_paused = true)]
async fn copies_behind_damage_of_any_kind_are_found() {
    let refusals: [fn(PartitionId) -> index::Error; 4] = [
        |_| index::Error::Corrupt(index::Damage::Rows("a block".to_owned())),
        |_| index::Error::Corrupt(index::Damage::DiskOut("disk 2".to_owned())),
        |_| index::Error::Unavailable("the coordinator".to_owned()),
        |_| index::Error::Overloaded,
    ];
    for refusal in refusals {
        let error = refusal(PartitionId::new(2));
        let one = refusing(ranges(4), &[2], refusal).await;
        assert_eq!(found(&one).await, (vec![1, 3, 4], vec![2]), "{error}");
        let stripes = Stripe::all(3).map(|one| PartitionKeys::striped(KeyRange::all(), one));
        let one = refusing(stripes.collect(), &[2], refusal).await;
        assert_eq!(found(&one).await, (vec![1, 3], vec![2]), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn copies_of_healthy_stripes_are_found() {
    let stripes = Stripe::all(3).map(|one| PartitionKeys::striped(KeyRange::all(), one));
    let router = router(stripes.collect(), &[2]).await;
    assert_eq!(found(&router).await, (vec![1, 3], vec![2]));
}
