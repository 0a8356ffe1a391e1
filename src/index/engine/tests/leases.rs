//! Answers that count only while no other process serves the partition.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::capacity;
use crate::capacity::OwnedLog;
use crate::capacity::ReadLeases;
use crate::coordinator;
use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::Refused;
use crate::index::engine::change::hand_off;
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put, put_if_absent};
use crate::index::map::PartitionDescriptor;
use crate::types::AccountName;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;

/// What the members say.
#[derive(Debug, Default)]
struct Members {
    /// Of every log, whoever asks.
    are_fenced: Mutex<bool>,
    /// The logs that they were asked about last.
    asked: Mutex<Vec<OwnedLog>>,
    questions: Mutex<usize>,
}

#[async_trait]
impl ReadLeases for Members {
    fn are_held(&self, _: &[OwnedLog]) -> bool {
        false
    }

    async fn ask(&self, logs: &[OwnedLog]) -> Vec<ExtentId> {
        *self.asked.lock().unwrap() = logs.to_vec();
        *self.questions.lock().unwrap() += 1;
        let are_fenced = *self.are_fenced.lock().unwrap();
        logs.iter().filter(|_| are_fenced).map(|owned| owned.log).collect()
    }

    fn to_be_left(&self, _: &[OwnedLog]) -> Vec<ExtentId> {
        Vec::new()
    }

    async fn give_back(&self, _: &[OwnedLog]) {}
}

impl Members {
    fn fence(&self, are_fenced: bool) {
        *self.are_fenced.lock().unwrap() = are_fenced;
    }

    fn questions(&self) -> usize {
        *self.questions.lock().unwrap()
    }
}

async fn open(world: &World, members: &Arc<Members>) -> (Dependencies, Partition) {
    let leases = Some(Arc::clone(members) as Arc<dyn ReadLeases>);
    let deps = Dependencies { leases, ..world.deps() };
    let context =
        Arc::new(HostContext::new(deps.clone(), world.config, HostId::new(0), Arc::default()));
    (deps, Partition::open(&context, PARTITION).await.unwrap())
}

/// The descriptor, as the process that has the partition open reads it.
async fn descriptor(deps: &Dependencies) -> PartitionDescriptor {
    let key = PartitionDescriptor::coordinator_key(PARTITION);
    let found = deps.coordinator.get(&key).await.unwrap().unwrap();
    PartitionDescriptor::decode(&found.value).unwrap()
}

async fn read(partition: &Partition) -> Error {
    let name = AccountName::new("account").unwrap();
    partition.read(partition.core.epoch, &Read::Account(name)).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn answers_wait_until_the_members_say_that_nobody_else_serves() {
    let (world, members) = (World::new().await, Arc::<Members>::default());
    let (deps, partition) = open(&world, &members).await;
    let found = Error::Refused(Refused::AccountNotFound);
    assert_eq!(read(&partition).await, found);
    partition.apply(put("a", "1")).await.unwrap();
    members.fence(true);
    let began = deps.env.clock.monotonic();
    let refused = read(&partition).await;
    assert!(matches!(refused, Error::NoAnswer(_)), "{refused}");
    // A refused condition is an answer too.
    let refused = partition.apply(put_if_absent("a", "2")).await.unwrap_err();
    assert!(matches!(refused, Error::NoAnswer(_)), "{refused}");
    let waited = deps.env.clock.monotonic() - began;
    assert!(waited >= Duration::from_secs(10) && waited < Duration::from_secs(12), "{waited:?}");
    // All members have the append of a write: nobody else served when it was acknowledged.
    let before = members.questions();
    partition.apply(put("b", "1")).await.unwrap();
    assert_eq!(members.questions(), before);
    let answered = async {
        deps.env.clock.sleep(Duration::from_secs(1)).await;
        members.fence(false);
    };
    assert_eq!(tokio::join!(read(&partition), answered).0, found);
    let refused = partition.apply(put_if_absent("a", "2")).await;
    assert_eq!(refused, Err(Error::Refused(Refused::ContainerExists)));
}

/// Some members may have it, and then the next owner finds it.
#[tokio::test(start_paused = true)]
async fn write_whose_append_is_refused_may_have_happened() {
    for (is_fenced, has_leases) in [(true, true), (true, false), (false, true), (false, false)] {
        let (world, members) = (World::new().await, Arc::<Members>::default());
        let (deps, partition) = if has_leases {
            open(&world, &members).await
        } else {
            let (deps, host) = (world.deps(), HostId::new(0));
            let context = HostContext::new(deps.clone(), world.config, host, Arc::default());
            (deps, Partition::open(&Arc::new(context), PARTITION).await.unwrap())
        };
        partition.apply(put("a", "1")).await.unwrap();
        if is_fenced {
            let newest = descriptor(&deps).await;
            let log = *newest.log.last().unwrap();
            deps.capacity.fence(log, newest.epoch.next()).await.unwrap();
        } else {
            // One of the members is full, and stays so.
            world.capacity.fail(When::From(0), Fault::Lied(capacity::Error::Full));
        }
        let first = partition.apply(put("b", "1")).await.unwrap_err();
        let is_unknown = matches!(first, Error::Unavailable(_));
        assert_eq!(is_unknown, has_leases, "{first}");
        if is_fenced {
            // Later ones are certainly not appended.
            let later = partition.apply(put("c", "1")).await;
            assert_eq!(later, Err(Error::WrongPartition));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn newest_log_of_an_opened_partition_is_a_new_one_of_its_epoch() {
    let (world, members) = (World::new().await, Arc::<Members>::default());
    for _ in 0..3 {
        let (deps, partition) = open(&world, &members).await;
        let newest = descriptor(&deps).await;
        let owned = OwnedLog { log: *newest.log.last().unwrap(), epoch: newest.epoch };
        drop(read(&partition).await);
        assert_eq!(*members.asked.lock().unwrap(), [owned]);
        partition.apply(put("a", "1")).await.unwrap();
        assert_eq!(descriptor(&deps).await.log, newest.log, "its log takes appends");
    }
}

#[tokio::test(start_paused = true)]
async fn log_of_which_a_member_gives_no_lease_is_left() {
    let (world, members) = (World::new().await, Arc::<Members>::default());
    let (deps, partition) = open(&world, &members).await;
    partition.apply(put("a", "1")).await.unwrap();
    let before = descriptor(&deps).await;
    members.fence(true);
    drop(read(&partition).await);
    let after = descriptor(&deps).await;
    assert_ne!(before.log.last(), after.log.last());
    members.fence(false);
    drop(read(&partition).await);
    let asked = members.asked.lock().unwrap()[0].log;
    assert_eq!(Some(&asked), after.log.last());
    // A log that is not the newest any more is not left once more.
    partition.leave_logs(&before.log);
    partition.apply(put("b", "1")).await.unwrap();
    assert_eq!(descriptor(&deps).await.log, after.log);
}

#[tokio::test(start_paused = true)]
async fn both_logs_count_while_it_is_not_known_whether_a_roll_happened() {
    for (fault, happened) in
        [(coordinator::Fault::AppliedThenAway, true), (coordinator::Fault::LostThenAway, false)]
    {
        let mut world = World::new().await;
        world.config.log_extent_bytes = 2_000;
        let members = Arc::<Members>::default();
        let (deps, partition) = open(&world, &members).await;
        partition.apply(put("a", "1")).await.unwrap();
        let before = descriptor(&deps).await.log;
        world.store.inject(fault);
        for _ in 0..20 {
            drop(partition.apply(put("a", &"1".repeat(500))).await);
        }
        assert!(!partition.core.may_write_log(), "no roll was in doubt");
        drop(read(&partition).await);
        let asked: Vec<_> = members.asked.lock().unwrap().iter().map(|owned| owned.log).collect();
        assert_eq!(asked.len(), 2, "{fault:?}");
        assert_eq!(asked.first(), before.last());
        assert_eq!(asked.last() == descriptor(&deps).await.log.last(), happened);
    }
}

#[tokio::test(start_paused = true)]
async fn logs_of_new_partitions_count_while_it_is_not_known_whether_a_split_happened() {
    for (fault, is_known) in [
        (coordinator::Fault::AppliedThenAway, false),
        (coordinator::Fault::LostThenAway, false),
        (coordinator::Fault::Unavailable, true),
    ] {
        let (world, members) = (World::new().await, Arc::<Members>::default());
        let (_, partition) = open(&world, &members).await;
        partition.apply(put("a", "1")).await.unwrap();
        let before = partition.newest_logs();
        let middle = RoutingKey::from_bytes(Bytes::from_static(b"m"));
        let low = KeyRange::new(RoutingKey::min(), Some(middle.clone()));
        let parts = [low, KeyRange::new(middle, None)].map(PartitionKeys::from);
        let parts = (2..).map(PartitionId::new).zip(parts).collect();
        world.store.inject(fault);
        assert!(partition.split(parts).await.is_err());
        let after = partition.newest_logs();
        assert_eq!(after.first(), before.first());
        assert_eq!(after.len(), if is_known { 1 } else { 3 }, "{fault:?}");
        drop(read(&partition).await);
        assert_eq!(*members.asked.lock().unwrap(), after);
        assert!(after.iter().skip(1).all(|owned| owned.epoch == partition.core.epoch.next()));
    }
}

#[tokio::test(start_paused = true)]
async fn refused_roll_changes_nothing() {
    let (world, members) = (World::new().await, Arc::<Members>::default());
    let (_, partition) = open(&world, &members).await;
    partition.apply(put("a", "1")).await.unwrap();
    let before = partition.newest_logs();
    world.store.set_faults(coordinator::Faults {
        unavailable_per_mille: 1_000,
        ..coordinator::Faults::default()
    });
    partition.leave_logs(&[before[0].log]);
    partition.apply(put("b", "1")).await.unwrap();
    assert_eq!(partition.newest_logs(), before);
}

/// An extent of a cluster has one writer, and nobody gives leases of a sealed log.
#[tokio::test]
async fn moved_partition_of_a_cluster_goes_on_in_a_new_log() {
    let (world, members) = (World::new().await, Arc::new(Members::default()));
    let (deps, partition) = open(&world, &members).await;
    partition.apply(put("a", "1")).await.unwrap();
    let before = descriptor(&deps).await.log;
    let partition = Arc::new(partition);
    let to = HostContext::new(deps.clone(), world.config, HostId::new(1), Arc::default());
    let moved = hand_off(&partition, &Arc::new(to)).await.unwrap().partition;
    partition.abandon().await;
    let after = descriptor(&deps).await.log;
    assert_ne!(after.last(), before.last());
    moved.apply(put("b", "2")).await.unwrap();
    assert_eq!(descriptor(&deps).await.log, after, "the first write needs no further log");
    assert_eq!(moved.rows().await.len(), 2);
    // It can move on at once.
    let moved = Arc::new(moved);
    let to = HostContext::new(deps.clone(), world.config, HostId::new(0), Arc::default());
    let back = hand_off(&moved, &Arc::new(to)).await.unwrap().partition;
    moved.abandon().await;
    assert_eq!(back.rows().await.len(), 2);
}
