//! Writes that wait: for how long, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use crate::index::api::{Error, Full};
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{World, put};
use crate::index::rows::{Family, Rows};

const LIMIT: Duration = Duration::from_secs(2);

/// A partition whose limit is `LIMIT`.
async fn open(world: &mut World) -> Arc<Partition> {
    world.config.queue_wait_max = LIMIT;
    // However few wait, they are many.
    world.config.queue_ops = 7;
    let partition = Arc::new(world.open().await.unwrap());
    // A log that is open, so that one append is all a write needs.
    partition.apply(put("first", "value")).await.unwrap();
    partition
}

/// A write at some time from now: its outcome, and how long it waited.
async fn write(
    partition: &Partition,
    key: &'static str,
    after: Duration,
) -> (Result<(), Error>, Duration) {
    tokio::time::sleep(after).await;
    let clock = &partition.core.context.deps.env.clock;
    let begun = clock.monotonic();
    let outcome = partition.apply(put(key, "value")).await;
    (outcome, clock.monotonic() - begun)
}

#[tokio::test(start_paused = true)]
async fn stalled_disk_refuses_what_was_not_begun_and_waits_for_what_was() {
    let mut world = World::new().await;
    let partition = open(&mut world).await;
    let stalled = world.capacity.stall().await;
    let (began, queued, soon, late, ()) = tokio::join!(
        write(&partition, "began", Duration::ZERO),
        write(&partition, "queued", Duration::from_millis(1)),
        write(&partition, "soon", LIMIT / 2 - Duration::from_millis(1)),
        write(&partition, "late", LIMIT / 2),
        async {
            tokio::time::sleep(LIMIT * 5).await;
            drop(stalled);
        }
    );
    assert_eq!(began, (Ok(()), LIMIT * 5), "it may be durable: nobody can say that it is not");
    assert_eq!(queued, (Err(Error::Overloaded), LIMIT));
    assert_eq!(soon, (Err(Error::Overloaded), LIMIT), "it came before anybody could tell");
    assert_eq!(late, (Err(Error::Overloaded), Duration::ZERO), "it would have waited in vain");
    let after = write(&partition, "after", Duration::ZERO).await.0;
    assert_eq!(after, Ok(()), "the disk works again");
    let keys: Vec<_> = partition.rows().await.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["after", "began", "first"], "what was refused never happens");
}

/// A power cut could still take the row back.
#[tokio::test(start_paused = true)]
async fn row_is_not_read_before_it_is_durable() {
    let mut world = World::new().await;
    let partition = open(&mut world).await;
    let stalled = world.capacity.stall().await;
    let look = async || partition.core.snapshot().get(Family::Main, b"late").await.unwrap();
    let (written, (before, scanned)) =
        tokio::join!(write(&partition, "late", Duration::ZERO), async {
            tokio::time::sleep(LIMIT / 2).await;
            let seen = (look().await, partition.rows().await.len());
            drop(stalled);
            seen
        });
    assert_eq!(written.0, Ok(()));
    assert_eq!((before, scanned), (None, 1));
    assert_eq!(look().await.as_deref(), Some(b"value".as_slice()));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_less_than_the_limit_is_done() {
    let mut world = World::new().await;
    let partition = open(&mut world).await;
    let stalled = world.capacity.stall().await;
    let (began, queued, ()) = tokio::join!(
        write(&partition, "began", Duration::ZERO),
        write(&partition, "queued", Duration::from_millis(1)),
        async {
            tokio::time::sleep(LIMIT - Duration::from_millis(1)).await;
            drop(stalled);
        }
    );
    assert_eq!((began.0, queued.0), (Ok(()), Ok(())));
    assert_eq!(partition.rows().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn given_up_writes_give_their_bytes_back() {
    let mut world = World::new().await;
    world.config.queue_bytes = 4000;
    let partition = open(&mut world).await;
    for _ in 0..5 {
        let stalled = world.capacity.stall().await;
        let (_, one, two, ()) = tokio::join!(
            write(&partition, "began", Duration::ZERO),
            write(&partition, "one", Duration::from_millis(1)),
            write(&partition, "two", Duration::from_millis(1)),
            async {
                tokio::time::sleep(LIMIT * 2).await;
                drop(stalled);
            }
        );
        assert_eq!((one.1, two.1), (LIMIT, LIMIT), "they were queued");
        partition.apply(put("after", "value")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn change_of_the_map_makes_nobody_refuse() {
    let mut world = World::new().await;
    let partition = open(&mut world).await;
    let held = partition.hold().await.unwrap();
    let (one, two, ()) = tokio::join!(
        write(&partition, "one", Duration::ZERO),
        write(&partition, "two", LIMIT * 20),
        async {
            tokio::time::sleep(LIMIT * 30).await;
            held.resume();
        }
    );
    assert_eq!((one.0, two.0), (Ok(()), Ok(())));
    assert_eq!(partition.apply(put("after", "value")).await, Ok(()));
}

/// A partition with memtables that are full.
async fn full(world: &mut World) -> Arc<Partition> {
    world.config.memtable_bytes_max = 10_000;
    let partition = open(world).await;
    for number in 0.. {
        if partition.core.may_write().is_err() {
            break;
        }
        partition.apply(put(&format!("key{number}"), &"x".repeat(500))).await.unwrap();
    }
    partition
}

#[tokio::test(start_paused = true)]
async fn full_memtables_are_waited_for() {
    let mut world = World::new().await;
    let partition = full(&mut world).await;
    let (one, two, ()) = tokio::join!(
        write(&partition, "one", Duration::ZERO),
        write(&partition, "two", Duration::from_millis(1)),
        async {
            tokio::time::sleep(LIMIT - Duration::from_millis(1)).await;
            partition.flush().await.unwrap();
        }
    );
    assert_eq!((one.0, two.0), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn memtables_that_stay_full_refuse_in_the_end() {
    let mut world = World::new().await;
    let partition = full(&mut world).await;
    let (first, later) =
        tokio::join!(write(&partition, "x", Duration::ZERO), write(&partition, "y", LIMIT / 2),);
    assert_eq!(first, (Err(Error::Overloaded), LIMIT));
    assert_eq!(later, (Err(Error::Overloaded), Duration::ZERO), "it would have waited in vain");
    partition.core.context.budget.ring();
    world.capacity.set_full(true);
    let (waits, flushed) = tokio::join!(write(&partition, "x", Duration::ZERO), async {
        tokio::time::sleep(LIMIT / 2).await;
        partition.flush().await
    });
    assert!(flushed.is_err());
    assert_eq!(waits, (Err(Error::Full(Full::Disks)), LIMIT / 2), "there will be no room");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_learns_of_new_owners() {
    let mut world = World::new().await;
    let partition = full(&mut world).await;
    let (waits, ()) = tokio::join!(write(&partition, "x", Duration::ZERO), async {
        tokio::time::sleep(LIMIT / 2).await;
        partition.core.lose();
    });
    assert_eq!(waits, (Err(Error::WrongPartition), LIMIT / 2));
}

/// A slow disk is not overload: three clients wait for it.
#[tokio::test(start_paused = true)]
async fn few_wait_for_a_slow_disk() {
    let world = World::new().await;
    let partition = Arc::new(world.open().await.unwrap());
    partition.apply(put("first", "value")).await.unwrap();
    let stalled = world.capacity.stall().await;
    let (one, two, three, ()) = tokio::join!(
        write(&partition, "one", Duration::ZERO),
        write(&partition, "two", Duration::from_millis(1)),
        write(&partition, "three", Duration::from_secs(5)),
        async {
            tokio::time::sleep(Duration::from_secs(14)).await;
            drop(stalled);
        }
    );
    assert_eq!((one.0, two.0, three.0), (Ok(()), Ok(()), Ok(())));
}

/// As few as they are, they do not wait for ever.
#[tokio::test(start_paused = true)]
async fn few_wait_for_fifteen_seconds() {
    let world = World::new().await;
    let partition = Arc::new(world.open().await.unwrap());
    partition.apply(put("first", "value")).await.unwrap();
    let stalled = world.capacity.stall().await;
    let (began, queued, ()) = tokio::join!(
        write(&partition, "began", Duration::ZERO),
        write(&partition, "queued", Duration::from_millis(1)),
        async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(stalled);
        }
    );
    assert_eq!(began.0, Ok(()));
    assert_eq!(queued, (Err(Error::Overloaded), Duration::from_secs(15)));
}

/// A queue that is long is refused fast, however patient those in front are.
#[tokio::test(start_paused = true)]
async fn long_queue_is_refused_fast() {
    let world = World::new().await;
    let partition = Arc::new(world.open().await.unwrap());
    partition.apply(put("first", "value")).await.unwrap();
    let stalled = world.capacity.stall().await;
    let queue = partition.core.context.config.queue_ops / 4;
    let crowd = (0..queue).map(|_| write(&partition, "crowd", Duration::from_millis(1)));
    let (began, crowd, late, ()) = tokio::join!(
        write(&partition, "began", Duration::ZERO),
        futures_util::future::join_all(crowd),
        write(&partition, "late", LIMIT / 2),
        async {
            tokio::time::sleep(LIMIT * 5).await;
            drop(stalled);
        }
    );
    assert_eq!(began.0, Ok(()));
    assert_eq!(late, (Err(Error::Overloaded), Duration::ZERO));
    let refused = crowd.iter().filter(|(outcome, _)| *outcome == Err(Error::Overloaded));
    let waited: Vec<Duration> = refused.map(|(_, waited)| *waited).collect();
    assert_eq!(waited.len(), queue / 2, "those who came when many were there");
    assert!(waited.iter().all(|waited| *waited == LIMIT));
}
