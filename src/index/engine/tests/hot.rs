//! One hot key: many lookups of it at once. What they share is the reading of a block, which never
//! changes; each looks at the rows of its own instant.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::index::api::Error;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{World, put, remove};
use crate::index::rows::Family;
use crate::index::rows::Rows;

/// A partition whose rows are in a run, with nothing of it in the cache.
async fn cold(world: &World) -> Partition {
    let partition = world.open().await.unwrap();
    for number in 0..500 {
        partition.apply(put(&format!("key{number:05}"), &"x".repeat(300))).await.unwrap();
    }
    partition.flush().await.unwrap();
    drop(partition);
    world.open().await.unwrap()
}

async fn look_up(partition: &Partition, key: &str) -> Result<Option<Bytes>, Error> {
    partition.core.snapshot().get(Family::Main, key.as_bytes()).await
}

async fn let_go<T>(stalled: T) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(stalled);
}

#[tokio::test(start_paused = true)]
async fn lookups_that_need_the_same_block_cause_one_read() {
    let world = World::new().await;
    let partition = cold(&world).await;
    let before = world.capacity.reads();
    let stalled = world.capacity.stall_reads().await;
    let lookups = join_all((0..256).map(|_| look_up(&partition, "key00250")));
    let (found, ()) = tokio::join!(lookups, let_go(stalled));
    assert!(found.iter().all(|row| row.as_ref().unwrap().as_ref().unwrap().len() == 300));
    assert_eq!(world.capacity.reads() - before, 1);
    look_up(&partition, "key00250").await.unwrap();
    assert_eq!(world.capacity.reads() - before, 1, "it is kept");
}

#[tokio::test(start_paused = true)]
async fn lookup_that_leaves_takes_nobody_with_it() {
    let world = World::new().await;
    let partition = cold(&world).await;
    let before = world.capacity.reads();
    let stalled = world.capacity.stall_reads().await;
    let leaves = tokio::time::timeout(Duration::from_millis(1), look_up(&partition, "key00250"));
    let stay = join_all((0..16).map(|_| look_up(&partition, "key00250")));
    let (left, found, ()) = tokio::join!(leaves, stay, let_go(stalled));
    assert!(left.is_err());
    assert!(found.iter().all(|row| row.as_ref().unwrap().is_some()));
    assert!(world.capacity.reads() - before <= 2);
}

#[tokio::test(start_paused = true)]
async fn lookup_sees_what_was_answered_before_it_began_while_older_ones_wait() {
    let world = World::new().await;
    let partition = cold(&world).await;
    let stalled = world.capacity.stall_reads().await;
    let older = join_all((0..16).map(|_| look_up(&partition, "key00250")));
    let changes = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        partition.apply(put("key00250", "new")).await.unwrap();
        assert_eq!(look_up(&partition, "key00250").await, Ok(Some("new".into())));
        partition.apply(remove("key00250")).await.unwrap();
        assert_eq!(look_up(&partition, "key00250").await, Ok(None));
        drop(stalled);
    };
    let (older, ()) = tokio::join!(older, changes);
    for row in older {
        assert_eq!(row.unwrap().unwrap().len(), 300, "as it was when these began");
    }
}
