//! Moves that panic: the partition is served after all.

use super::*;
use crate::index::engine::testing::Trap;

/// Longer than any pause between two tries.
const LONG: Duration = Duration::from_secs(120);

/// Has a move fail from each of its calls on, with a panic in the fence after `others`; returns how
/// often it left the partition closed.
async fn fail_and_panic(when: &str, others: usize) -> usize {
    let mut closed = 0;
    for call in 0..14 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..=20).await;
        let id = rig.target(&name(1)).await.partition;
        let fails = || Fault::Refused(crate::capacity::Error::Ended { doing: "test" });
        world.capacity.fail(When::From(call), fails());
        if when == "in the move" {
            world.capacity.trap(Trap::Fence(others));
        }
        let moved = rig.host.move_to(id, HostId::new(1)).await;
        if moved.is_ok() || rig.host.partitions() > 0 {
            continue;
        }
        if when == "after the move" {
            world.capacity.trap(Trap::Fence(others));
        }
        rig.deps.env.clock.sleep(LONG).await;
        assert_eq!(rig.host.partitions(), 0, "nothing can be fenced");
        world.capacity.fail(When::Once(usize::MAX), fails());
        rig.deps.env.clock.sleep(LONG).await;
        let health = rig.deps.env.tasks.health();
        assert_eq!((health.panics("partition reopen"), health.stopped()), (1, Vec::new()));
        rig.check(20).await;
        rig.write(21).await;
        rig.check(21).await;
        let back = rig.host.move_to(id, HostId::new(0)).await.unwrap();
        assert_eq!(back.partitions, [id]);
        rig.host.shutdown().await;
        closed += 1;
    }
    closed
}

#[tokio::test(start_paused = true)]
async fn partition_is_served_although_what_opens_it_after_a_move_panicked() {
    assert!(fail_and_panic("after the move", 0).await > 0);
}

/// The move itself tries for a while, with its caller waiting.
#[tokio::test(start_paused = true)]
async fn partition_is_served_although_the_first_tries_to_open_it_panicked() {
    assert!(fail_and_panic("in the move", 1).await > 0);
}

/// What the new host does first is part of the change that holds the partition.
#[tokio::test(start_paused = true)]
async fn partition_is_served_although_its_move_panicked() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=20).await;
    let id = rig.target(&name(1)).await.partition;
    world.capacity.trap(Trap::Fence(0));
    let moved = rig.host.move_to(id, HostId::new(1)).await;
    assert!(matches!(moved, Err(ChangeError::Failed(Error::Unavailable(_)))), "{moved:?}");
    rig.deps.env.clock.sleep(LONG).await;
    assert_eq!(rig.deps.env.tasks.health().panics("partition move"), 1);
    rig.check(20).await;
    rig.write(21).await;
    rig.check(21).await;
    rig.host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn server_stops_although_what_opens_a_partition_panicked() {
    let mut stopped = 0;
    for call in 0..14 {
        let world = World::empty();
        let rig = after_a_move_that_fails_from(call, &world).await;
        world.capacity.trap(Trap::Fence(0));
        rig.deps.env.clock.sleep(Duration::from_millis(500)).await;
        stopped += usize::from(rig.deps.env.tasks.health().panics("partition reopen") > 0);
        rig.host.shutdown().await;
    }
    assert!(stopped > 0);
}
