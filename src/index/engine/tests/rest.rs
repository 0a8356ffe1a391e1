//! Compaction of a partition without writes.

use std::ops::Range;
use std::time::Duration;

use futures_util::future::join_all;

use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{World, put, remove};
use crate::index::rows::Family;

/// More rows than a merge of a family as a whole is worth.
const ROWS: usize = 12_000;

/// Writes these keys and flushes them.
async fn fill(partition: &Partition, keys: Range<usize>, value: &str) {
    for start in keys.clone().step_by(1_000) {
        let end = keys.end.min(start + 1_000);
        let writes =
            (start..end).map(|number| partition.apply(put(&format!("key{number:06}"), value)));
        assert!(join_all(writes).await.iter().all(Result::is_ok));
    }
    partition.flush().await.unwrap();
}

fn main_runs(partition: &Partition) -> usize {
    partition.core.published().sources.runs(Family::Main).len()
}

#[tokio::test]
async fn rows_over_older_ones_are_merged_at_rest_only() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    fill(&partition, 0..ROWS, "older").await;
    fill(&partition, 0..ROWS, "newer").await;
    let before = partition.rows().await;
    assert!(!partition.compact().await.unwrap());
    assert_eq!(main_runs(&partition), 2);
    assert!(partition.compact_at_rest().await.unwrap());
    assert_eq!(main_runs(&partition), 1);
    assert!(partition.core.may_compact_at_rest(), "the runs have changed");
    assert!(!partition.compact_at_rest().await.unwrap(), "there is nothing left to merge");
    assert!(!partition.core.may_compact_at_rest());
    assert_eq!(partition.rows().await, before);
    // What is flushed later is examined again.
    fill(&partition, 0..1, "last").await;
    assert!(partition.core.may_compact_at_rest());
}

#[tokio::test]
async fn rows_over_several_older_runs_are_counted_for_all_of_them() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    fill(&partition, 0..ROWS, "older").await;
    fill(&partition, ROWS..ROWS * 2, "older").await;
    // Half of it lies over each.
    fill(&partition, ROWS / 2..ROWS * 3 / 2, "newer").await;
    assert!(partition.compact_at_rest().await.unwrap());
    assert_eq!(main_runs(&partition), 1);
}

#[tokio::test]
async fn runs_beside_each_other_and_a_few_new_rows_are_left_at_rest() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    fill(&partition, 0..ROWS, "value").await;
    fill(&partition, ROWS..ROWS * 2, "value").await;
    fill(&partition, 0..ROWS / 4, "newer").await;
    assert!(!partition.compact_at_rest().await.unwrap());
    assert_eq!(main_runs(&partition), 3);
}

#[tokio::test]
async fn a_partition_is_at_rest_ten_seconds_after_its_last_write() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    let core = &partition.core;
    let at_rest = |seconds| core.is_at_rest(Duration::from_secs(seconds));
    assert_eq!([100, 109, 110, 200].map(at_rest), [false, false, true, true]);
    partition.apply(remove("a")).await.unwrap();
    assert_eq!([201, 210, 211].map(at_rest), [false, false, true]);
    core.rest_again(Duration::from_secs(212));
    assert_eq!([213, 221, 222].map(at_rest), [false, false, true]);
}
