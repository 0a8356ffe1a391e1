use super::*;
use crate::index::api::Damage;
use crate::index::engine::table::Budget;
use crate::index::engine::testing::{World, put};

async fn written() -> World {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for name in ["a", "b", "c"] {
        partition.apply(put(name, "value")).await.unwrap();
    }
    world
}

async fn replay_all(replay: &mut Replay<'_>) -> Result<(), Error> {
    let tables = Tables::new(std::sync::Arc::new(Budget::default()));
    while replay.step(&tables).await? {}
    Ok(())
}

fn names(error: &Error, invariant: &str) -> bool {
    matches!(error, Error::Corrupt(Damage::Rows(_))) && error.to_string().contains(invariant)
}

#[tokio::test]
async fn a_commit_that_is_applied_again_is_found() {
    let world = written().await;
    let descriptor = world.descriptor().await;
    let mut replay = Replay::start(world.capacity.as_ref(), &descriptor).await.unwrap();
    replay_all(&mut replay).await.unwrap();
    assert_eq!(replay.sequence(), Sequence::new(3));
    // Read again, it changes nothing: what was seen before is passed over.
    (replay.at, replay.reader) = (0, None);
    replay.epoch = Epoch::new(0);
    replay_all(&mut replay).await.unwrap();
    // Unless that is forgotten.
    (replay.at, replay.reader, replay.sequence) = (0, None, Sequence::new(0));
    replay.epoch = Epoch::new(0);
    let error = replay_all(&mut replay).await.unwrap_err();
    assert!(names(&error, "invariant I14 is violated: commit 1 is applied again"), "{error}");
}

#[tokio::test]
async fn a_manifest_of_another_epoch_is_found() {
    let world = written().await;
    let descriptor = world.descriptor().await;
    let older = PartitionDescriptor { epoch: Epoch::new(0), ..descriptor.clone() };
    let mut replay = Replay::start(world.capacity.as_ref(), &older).await.unwrap();
    let error = replay_all(&mut replay).await.unwrap_err();
    assert!(names(&error, "invariant I2 is violated"), "above the owner's: {error}");
    let mut replay = Replay::start(world.capacity.as_ref(), &descriptor).await.unwrap();
    replay.epoch = Epoch::new(9);
    let error = replay_all(&mut replay).await.unwrap_err();
    assert!(names(&error, "invariant I2 is violated"), "it falls: {error}");
}
