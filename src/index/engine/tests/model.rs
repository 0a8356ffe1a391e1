//! The engine against the simplest model of it: an ordered map.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{World, put, put_if_absent, remove};
use crate::index::engine::view::Snapshot;
use crate::index::rows::Family;
use crate::index::rows::Rows;

#[derive(Clone, Debug)]
enum Change {
    Put(u8, usize),
    Create(u8, usize),
    Remove(u8),
}

#[derive(Clone, Debug)]
enum Step {
    /// Queued together, so that they become one batch or a few.
    Changes(Vec<Change>),
    Get(u8),
    Scan(u8, u8, usize),
    /// Keeps a snapshot, to compare at the end.
    Hold,
    Flush,
    Compact,
    Crash,
    Restart,
}

type Model = BTreeMap<String, Bytes>;

fn change() -> impl Strategy<Value = Change> {
    let len = prop_oneof![3 => 0..40usize, 1 => 1000..6000usize];
    prop_oneof![
        4 => (any::<u8>(), len.clone()).prop_map(|(key, len)| Change::Put(key, len)),
        1 => (any::<u8>(), len).prop_map(|(key, len)| Change::Create(key, len)),
        2 => any::<u8>().prop_map(Change::Remove),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec(change(), 1..30).prop_map(Step::Changes),
        2 => any::<u8>().prop_map(Step::Get),
        2 => (any::<u8>(), any::<u8>(), 0..300usize).prop_map(|(a, b, n)| Step::Scan(a, b, n)),
        1 => Just(Step::Hold),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Crash),
        1 => Just(Step::Restart),
    ]
}

/// Long common parts and a few short keys, as names have.
fn key(number: u8) -> String {
    if number < 4 { format!("{number}") } else { format!("container/folder/{number:03}") }
}

fn value(number: u8, len: usize) -> String {
    format!("{number}-").repeat(len / 2 + 1)
}

async fn change_both(partition: &Partition, model: &mut Model, changes: &[Change]) {
    let writes = changes.iter().map(|change| match change {
        Change::Put(k, len) => put(&key(*k), &value(*k, *len)),
        Change::Create(k, len) => put_if_absent(&key(*k), &value(*k, *len)),
        Change::Remove(k) => remove(&key(*k)),
    });
    let results = join_all(writes.map(|write| partition.apply(write))).await;
    for (change, result) in changes.iter().zip(results) {
        match change {
            Change::Put(k, len) => drop(model.insert(key(*k), value(*k, *len).into())),
            Change::Remove(k) => drop(model.remove(&key(*k))),
            Change::Create(k, _) if model.contains_key(&key(*k)) => {
                assert_eq!(result, Err(Error::Refused(Refused::ContainerExists)));
                continue;
            }
            Change::Create(k, len) => drop(model.insert(key(*k), value(*k, *len).into())),
        }
        assert_eq!(result, Ok(()));
    }
}

async fn compare(snapshot: &Snapshot, model: &Model) {
    let rows = snapshot.scan_all(Family::Main, (&[], None), usize::MAX).await.unwrap();
    let found: Vec<_> = rows.iter().map(|row| (row.key.as_ref(), &row.value)).collect();
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.as_bytes(), value)).collect();
    assert_eq!(found, expected);
}

async fn run(steps: Vec<Step>, log_extent_bytes: u64, replay_bytes_max: usize) {
    let mut world = World::new().await;
    world.config.log_extent_bytes = log_extent_bytes;
    // With little of it, replayed rows are spilled to runs.
    world.config.replay_bytes_max = replay_bytes_max;
    let mut partition = world.open().await.unwrap();
    let mut model = Model::new();
    let mut held = Vec::new();
    for step in steps {
        match step {
            Step::Changes(changes) => change_both(&partition, &mut model, &changes).await,
            Step::Get(k) => {
                let found = partition.core.snapshot().get(Family::Main, key(k).as_bytes()).await;
                assert_eq!(found.unwrap().as_ref(), model.get(&key(k)));
            }
            Step::Scan(from, to, limit) => {
                let (from, to) = (key(from), key(to));
                let snapshot = partition.core.snapshot();
                let to_bytes = Some(to.as_bytes());
                let rows =
                    snapshot.scan_all(Family::Main, (from.as_bytes(), to_bytes), limit).await;
                let found: Vec<_> = rows.unwrap().into_iter().map(|row| row.key).collect();
                let inside = model.keys().filter(|key| **key >= from && **key < to);
                let expected: Vec<_> =
                    inside.take(limit).map(|key| key.as_bytes().to_vec()).collect();
                assert_eq!(found, expected);
            }
            Step::Hold => held.push((partition.core.snapshot(), model.clone())),
            Step::Flush => {
                partition.flush().await.unwrap();
                partition.core.context.do_chores().await;
            }
            Step::Compact => {
                while partition.compact().await.unwrap() {}
                partition.core.context.do_chores().await;
            }
            Step::Crash | Step::Restart => {
                for (snapshot, model) in held.drain(..) {
                    compare(&snapshot, &model).await;
                }
                if matches!(step, Step::Restart) {
                    partition.close().await;
                }
                partition = world.open().await.unwrap();
                compare(&partition.core.snapshot(), &model).await;
            }
        }
    }
    for (snapshot, model) in held.drain(..) {
        compare(&snapshot, &model).await;
    }
    compare(&partition.core.snapshot(), &model).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn partition_behaves_as_an_ordered_map(
        steps in vec(step(), 1..60),
        log_extent_bytes in prop_oneof![Just(2_000u64), Just(50_000), Just(64 << 20)],
        spill in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(steps, log_extent_bytes, if spill { 4000 } else { 64 << 20 }));
    }
}
