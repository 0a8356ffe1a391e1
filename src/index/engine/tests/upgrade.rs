//! Records that another program left: an older one that knows none, or a newer one.

use crate::coordinator::Op;
use crate::index::ExtentRecord;
use crate::index::api::Error;
use crate::index::engine::testing::{PARTITION, World, put};
use crate::index::engine::upgrade;
use crate::index::map::PartitionMap;

/// A program without records served the store in between: the record is there, and its log is not
/// in it.
#[tokio::test]
async fn a_log_that_its_partitions_record_lacks_is_recorded_at_the_start() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "in a run")).await.unwrap();
    partition.flush().await.unwrap();
    partition.apply(put("b", "in the log")).await.unwrap();
    partition.core.shared.do_chores().await;
    let used = partition.core.uses();
    partition.abandon().await;
    let parts = world.parts();
    let coordinator = parts.coordinator.as_ref();
    let record = Op::Put(ExtentRecord::key(PARTITION), ExtentRecord::default().encode());
    coordinator.txn(&[], &[record]).await.unwrap();
    let map = PartitionMap::load(coordinator).await.unwrap();
    upgrade(coordinator, world.capacity.as_ref(), &map).await.unwrap();
    let (record, _) = ExtentRecord::load(coordinator, PARTITION).await.unwrap().unwrap();
    assert!(used.iter().all(|extent| record.has(*extent)), "{used:?} of {record:?}");
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_refused_by_its_version() {
    let world = World::new().await;
    let parts = world.parts();
    let coordinator = parts.coordinator.as_ref();
    let record = Op::Put(ExtentRecord::key(PARTITION), [7, 1, 2, 3].to_vec().into());
    coordinator.txn(&[], &[record]).await.unwrap();
    let one = ExtentRecord::load(coordinator, PARTITION).await.unwrap_err();
    let all = ExtentRecord::load_all(coordinator).await.unwrap_err();
    for refused in [one, all] {
        let Error::Corrupt(text) = &refused else { panic!("{refused:?}") };
        assert!(text.contains("version 7") && text.contains("reads 1"), "{text}");
    }
}
