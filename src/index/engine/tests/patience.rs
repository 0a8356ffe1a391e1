//! How long writes that take long wait for another of the same blob: as long as in the queue.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::ahead::{id, key, stage};
use crate::index::api::*;
use crate::index::engine::ahead::is_long;
use crate::index::engine::config::Config;
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, World};
use crate::index::objects::Objects;
use crate::types::*;

const LIMIT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(15);
const STAGED: u64 = 50;

/// A partition with the staged blocks of the blob "a".
async fn open(world: &World, config: Config) -> Partition {
    let deps = Dependencies { machine: Arc::new(Objects), ..world.deps() };
    let context = HostContext::new(deps, config, HostId::new(0), Arc::default());
    let partition = Partition::open(&Arc::new(context), PARTITION).await.unwrap();
    for number in 0..STAGED {
        partition.apply(stage("a", number)).await.unwrap();
    }
    partition
}

/// A list so long that it is evaluated ahead at once.
fn long_list() -> Write {
    let entry = |n| BlockListEntry { source: BlockSource::Latest, id: id(n % STAGED) };
    let write = Write::CommitBlocks(CommitBlocks {
        key: key("a"),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        list: (0..7_000).map(entry).collect(),
        tier: None,
    });
    assert!(is_long(&write, write.weight()));
    write
}

/// What came of a write, and how long it waited.
type Outcome = (Result<(), Error>, Duration);

/// A write at some time from now.
async fn write(partition: &Partition, write: Write, after: Duration) -> Outcome {
    tokio::time::sleep(after).await;
    let clock = &partition.core.context.deps.env.clock;
    let begun = clock.monotonic();
    let outcome = partition.apply(write).await;
    (outcome, clock.monotonic() - begun)
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Two long writes of one blob, the second a millisecond later, while the disk stands still.
async fn two_while_the_disk_stalls(time: Duration) -> (Outcome, Outcome) {
    let world = World::new().await;
    let partition = open(&world, world.config).await;
    let stalled = world.capacity.stall().await;
    let (first, second, ()) = tokio::join!(
        write(&partition, long_list(), Duration::ZERO),
        write(&partition, long_list(), milliseconds(1)),
        async {
            tokio::time::sleep(time).await;
            drop(stalled);
        }
    );
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn long_write_waits_for_another_of_its_blob_on_a_slow_disk() {
    let (first, second) = two_while_the_disk_stalls(Duration::from_secs(14)).await;
    assert_eq!((first.0, second.0), (Ok(()), Ok(())));
}

/// What it waits for the other and what it waits in the queue count together.
#[tokio::test(start_paused = true)]
async fn long_write_waits_for_fifteen_seconds() {
    let (first, second) = two_while_the_disk_stalls(Duration::from_secs(60)).await;
    assert_eq!(first.0, Ok(()));
    assert_eq!(second, (Err(Error::Overloaded), PATIENCE));
}

/// Writes that let another pass which was overtaken too often.
#[tokio::test(start_paused = true)]
async fn write_that_lets_a_long_one_pass_waits_as_long() {
    let world = World::new().await;
    let partition = open(&world, world.config).await;
    let range = long_list().reach().unwrap();
    let alone = partition.core.watches.begin_alone(&range);
    let (passing, late, ()) = tokio::join!(
        write(&partition, stage("a", 1), Duration::ZERO),
        write(&partition, stage("a", 2), Duration::from_secs(14)),
        async {
            tokio::time::sleep(PATIENCE * 2 - milliseconds(1_001)).await;
            drop(alone);
        }
    );
    assert_eq!(passing, (Err(Error::Overloaded), PATIENCE));
    assert_eq!(late, (Ok(()), PATIENCE - milliseconds(1)));
}

/// Those that wait for one another are a queue too, and a long one is refused fast.
#[tokio::test(start_paused = true)]
async fn many_long_writes_of_a_blob_are_refused_fast() {
    let world = World::new().await;
    // Eight bear the name of a crowd.
    let partition = open(&world, Config { queue_ops: 64, ..world.config }).await;
    let stalled = world.capacity.stall().await;
    let crowd = (1..=16).map(|n| write(&partition, long_list(), milliseconds(n)));
    let (first, crowd, late, ()) = tokio::join!(
        write(&partition, long_list(), Duration::ZERO),
        join_all(crowd),
        write(&partition, long_list(), LIMIT / 2 + milliseconds(1)),
        async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(stalled);
        }
    );
    assert_eq!(first.0, Ok(()));
    let waited: Vec<Duration> = crowd.iter().map(|(_, waited)| *waited).collect();
    assert!(crowd.iter().all(|(outcome, _)| *outcome == Err(Error::Overloaded)));
    assert_eq!(waited[..8], [PATIENCE; 8]);
    assert_eq!(waited[8..], [LIMIT; 8], "they came when many were there");
    assert_eq!(late, (Err(Error::Overloaded), Duration::ZERO), "it would have waited in vain");
}

/// Long lists take memory while they wait, and there need not be many to take much.
#[tokio::test(start_paused = true)]
async fn bytes_of_waiting_long_writes_make_a_crowd_too() {
    let world = World::new().await;
    let queue_bytes = 8 * 2 * long_list().weight();
    let partition = open(&world, Config { queue_bytes, ..world.config }).await;
    // The queue itself is empty: the other is still being evaluated.
    let watch = partition.core.watches.begin_alone(&long_list().reach().unwrap());
    let (one, two, three) = tokio::join!(
        write(&partition, long_list(), Duration::ZERO),
        write(&partition, long_list(), milliseconds(1)),
        write(&partition, long_list(), milliseconds(2)),
    );
    drop(watch);
    let late = |waited| (Err(Error::Overloaded), waited);
    assert_eq!((one, two, three), (late(PATIENCE), late(PATIENCE), late(LIMIT)));
}

/// What comes of so many writes that have to wait for another to end, which it does a moment
/// later: how many are done, and how many were refused at once.
async fn many_wait(config: Config, count: usize, ahead: bool) -> (usize, usize) {
    let world = World::new().await;
    let partition = open(&world, Config { queue_patience: PATIENCE, ..config }).await;
    let watch = partition.core.watches.begin_alone(&long_list().reach().unwrap());
    let clock = &partition.core.context.deps.env.clock;
    let write = async || {
        let begun = clock.monotonic();
        let done = match ahead {
            true => {
                partition
                    .write_ahead((long_list().into(), None), Duration::ZERO, clock.as_ref())
                    .await
            }
            false => partition.write(partition.core.epoch, long_list()).await,
        };
        (done.map(drop), clock.monotonic() - begun)
    };
    let (all, ()) = tokio::join!(join_all((0..count).map(|_| write())), async {
        tokio::time::sleep(milliseconds(1)).await;
        drop(watch);
    });
    let refused = (Err(Error::Overloaded), Duration::ZERO);
    let done = all.iter().filter(|(outcome, _)| outcome.is_ok()).count();
    (done, all.iter().filter(|one| **one == refused).count())
}

/// However fast the disk is: no write is late while no write waits in the queue itself.
#[tokio::test(start_paused = true)]
async fn as_many_long_writes_wait_as_there_may_be_in_the_queue() {
    let config = World::new().await.config;
    for ahead in [false, true] {
        let few = Config { queue_ops: 16, ..config };
        assert_eq!(many_wait(few, 40, ahead).await, (16, 24), "ahead: {ahead}");
        let small = Config { queue_bytes: 5 * long_list().weight(), ..config };
        assert_eq!(many_wait(small, 40, ahead).await, (5, 35), "ahead: {ahead}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_write_larger_than_the_queue_waits_when_no_other_does() {
    let config = World::new().await.config;
    for ahead in [false, true] {
        let small = Config { queue_bytes: long_list().weight() / 2, ..config };
        assert_eq!(many_wait(small, 3, ahead).await, (1, 2), "ahead: {ahead}");
    }
}

/// While the map changes, all writes wait. That wait does not count.
#[tokio::test(start_paused = true)]
async fn change_of_the_map_makes_no_long_write_give_up() {
    let world = World::new().await;
    let partition = open(&world, world.config).await;
    let held = partition.hold().await.unwrap();
    let (one, two, ()) = tokio::join!(
        write(&partition, long_list(), Duration::ZERO),
        write(&partition, long_list(), milliseconds(1)),
        async {
            tokio::time::sleep(PATIENCE * 4).await;
            held.resume();
        }
    );
    assert_eq!((one.0, two.0), (Ok(()), Ok(())));
}
