//! One partition over capacity in memory.

use crate::index::api::Error;
use crate::index::engine::testing::{World, put, put_if_absent, remove};

#[tokio::test]
async fn partition_keeps_rows_over_a_crash() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    partition.apply(put("b", &"2".repeat(1000))).await.unwrap();
    partition.apply(put("a", "3")).await.unwrap();
    partition.apply(put("c", "4")).await.unwrap();
    partition.apply(remove("c")).await.unwrap();
    assert_eq!(partition.apply(put_if_absent("a", "5")).await, Err(Error::ContainerExists));
    let before = partition.rows().await;
    assert_eq!(before.len(), 2);

    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await, before);
    partition.apply(put("d", "5")).await.unwrap();
    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await.len(), 3);
}

#[tokio::test]
async fn partition_keeps_rows_over_flush_and_close() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..500 {
        partition.apply(put(&format!("key{number:05}"), "value")).await.unwrap();
    }
    partition.flush().await.unwrap();
    for number in (0..500).step_by(2) {
        partition.apply(remove(&format!("key{number:05}"))).await.unwrap();
    }
    let before = partition.rows().await;
    assert_eq!(before.len(), 250);
    let reopened = world.open().await.unwrap();
    assert_eq!(reopened.rows().await, before);
    reopened.close().await;
    let again = world.open().await.unwrap();
    assert_eq!(again.rows().await, before);
}
