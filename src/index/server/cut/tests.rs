use super::*;
use crate::capacity;
use crate::capacity::Capacity;
use crate::index::api::Damage;
use crate::index::engine::open_offline;
use crate::index::engine::testing::{Fault, When, World, put};
use crate::index::rows::{Family, Rows};
use crate::telemetry::CapturedLog;
use crate::types::ExtentId;
use crate::types::RoutingKey;

/// Two partitions, one with keys below `m`.
async fn two(world: &World) -> (IndexServer, Vec<Arc<Partition>>) {
    let bound = RoutingKey::from_bytes(Bytes::from_static(b"m"));
    let server = IndexServer::open_with(vec![world.deps()], world.config, &[bound]).await.unwrap();
    let partitions = server.hosts.first().unwrap().opened.all();
    assert_eq!(partitions.len(), 2);
    (server, partitions)
}

/// Ends the logs of a cut, and reads a row of each partition as a copy would have it.
async fn read(world: &World, cut: &ConsistentCut, keys: [&str; 2], first: u64) -> Vec<u64> {
    let mut values = Vec::new();
    for (number, (partition, key)) in cut.partitions.iter().zip(keys).enumerate() {
        let id = ExtentId::new(first + number as u64);
        let ended = partition.end_log(world.capacity.as_ref(), id).await.unwrap();
        let capacity = Arc::clone(&world.capacity) as Arc<dyn Capacity>;
        let rows = open_offline(capacity, &ended).await.unwrap();
        let value = rows.get(Family::Main, key.as_bytes()).await.unwrap();
        let text = value.map(|value| String::from_utf8(value.to_vec()).unwrap());
        values.push(text.map_or(0, |text| text.parse().unwrap()));
    }
    values
}

#[tokio::test(start_paused = true)]
async fn a_cut_holds_nothing_without_what_it_follows_from() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let (low, high) = (Arc::clone(&partitions[0]), Arc::clone(&partitions[1]));
    let stop = tokio_util::sync::CancellationToken::new();
    let stopped = stop.clone();
    // What is written to the second partition follows from what was written to the first.
    let writer = async move {
        for number in 1.. {
            if stopped.is_cancelled() {
                return number - 1;
            }
            let value = number.to_string();
            low.apply(put("a", &value)).await.unwrap();
            high.apply(put("z", &value)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        0
    };
    let reader = async {
        let mut cuts = Vec::new();
        let mut seen = 0;
        for round in 0..40 {
            let cut = server.consistent_cut().await.unwrap();
            tokio::time::sleep(Duration::from_micros(700 * round)).await;
            let found = read(&world, &cut, ["a", "z"], 100_000 + 10 * round).await;
            assert!(found[1] <= found[0] && found[0] <= found[1] + 1, "{found:?}");
            assert!(found[0] >= seen, "{found:?}: {seen} was acknowledged before");
            seen = found[0];
            cuts.push((cut, found));
        }
        stop.cancel();
        // Logs went on meanwhile; the cuts are as they were.
        for (number, (cut, before)) in cuts.iter().enumerate() {
            let first = 200_000 + 10 * number as u64;
            assert_eq!(&read(&world, cut, ["a", "z"], first).await, before);
        }
    };
    let (written, ()) = tokio::join!(writer, reader);
    assert!(written > 40, "{written}");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn logs_and_runs_of_a_cut_stay_until_it_is_dropped() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let fill = async |value: &str| {
        for number in 0..600 {
            let (key, value) = (format!("a{number}"), value.repeat(2_000));
            partitions[0].apply(put(&key, &value)).await.unwrap();
        }
        server.flush().await.unwrap();
    };
    fill("1").await;
    let cut = server.consistent_cut().await.unwrap();
    let named: Vec<ExtentId> = cut.partitions.iter().flat_map(CutPartition::extents).collect();
    for value in ["2", "3", "4", "5"] {
        fill(value).await;
        while partitions[0].compact().await.unwrap() {}
    }
    let settle = async || {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let infos = world.capacity.extents().await;
        let is_there = |extent: &&ExtentId| infos.iter().any(|info| info.extent == **extent);
        named.iter().filter(is_there).count()
    };
    assert_eq!(settle().await, named.len());
    drop(cut);
    assert!(settle().await < named.len(), "nothing keeps them any more");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_never_stands_still_stops_no_other_and_is_named() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    // Another change that pauses the second partition waits for this.
    let stuck = partitions[1].pause().await.unwrap();
    let (longest, refused) = slowest_write(&server, &partitions[0]).await;
    assert!(longest <= PAUSE_FIRST, "{longest:?}");
    let Err(CutError::Failed(Error::Unavailable(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains(&format!("partition {}", partitions[1].core.id)), "{why}");
    drop(stuck);
    server.consistent_cut().await.unwrap();
    server.shutdown().await;
}

/// What a cut is refused with after all tries.
async fn refused(server: &IndexServer) -> String {
    let made = server.consistent_cut().await;
    let Err(CutError::Failed(Error::Unavailable(why))) = made else { panic!("{made:?}") };
    why
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_on_its_way_to_another_host_is_named() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    // Neither open nor closed, as after a move whose new host could not open it yet.
    let moved = Arc::clone(&partitions[1]);
    server.hosts.first().unwrap().opened.replace(std::slice::from_ref(&moved), Vec::new());
    moved.abandon().await;
    let why = refused(&server).await;
    assert!(why.starts_with(&format!("partition {}: ", moved.core.id)), "{why}");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_opened_again_where_it_is_is_named() {
    let mut world = World::empty();
    world.config.log_extent_bytes = 2_000;
    let (server, partitions) = two(&world).await;
    let (whole, stopped) = (&partitions[0], &partitions[1]);
    whole.apply(put("a", "1")).await.unwrap();
    stopped.apply(put("z", "1")).await.unwrap();
    world.store.inject(coordinator::Fault::LostThenFull);
    while stopped.core.may_write_log() {
        drop(stopped.apply(put("z", &"1".repeat(500))).await);
    }
    let why = refused(&server).await;
    assert!(why.starts_with(&format!("partition {}: ", stopped.core.id)), "{why}");
    world.store.set_full(false);
    server.consistent_cut().await.unwrap();
    server.shutdown().await;
}

/// What the pause of all partitions fails with while the second one becomes another.
async fn unpaused(server: &IndexServer, change: impl Future<Output = ()>) -> String {
    let (paused, ()) = tokio::join!(server.pause_all(PATIENCE, Together::No), change);
    paused.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_just_became_another_is_not_said_to_wait() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let old = Arc::clone(&partitions[1]);
    let gone = format!("partition {}: it has just been moved, split, merged", old.core.id);
    old.hold().await.unwrap().moved();
    let why = unpaused(&server, async {}).await;
    assert!(why.contains(&gone), "{why}");
    let why = unpaused(&server, async {
        server.hosts.first().unwrap().opened.replace(std::slice::from_ref(&old), Vec::new());
        old.abandon().await;
    });
    let why = why.await;
    assert!(why.contains(&gone), "{why}");
    server.shutdown().await;
}

#[test]
fn several_partitions_are_named_as_several() {
    let ids = [3, 5].map(PartitionId::new);
    let busy = |ids: &[PartitionId]| busy(&ids.iter().copied().collect()).to_string();
    let one = busy(&ids[..1]);
    assert!(one.contains("partition 3 is busy or its disk stalls"), "{one}");
    let two = busy(&ids);
    assert!(two.contains("partitions 3, 5 are busy or their disks stall"), "{two}");
}

#[tokio::test(start_paused = true)]
async fn several_partitions_that_change_are_named_as_several() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let ids: Vec<String> = partitions.iter().map(|one| one.core.id.to_string()).collect();
    let cut = server.consistent_cut().await.unwrap();
    let two = changing(&cut.rows, &[]).to_string();
    let named = format!("partitions {}: they are being moved, split, merged", ids.join(", "));
    assert!(two.contains(&named), "{two}");
    let one = changing(&cut.rows, &cut.partitions[..1]).to_string();
    let named = format!("partition {}: it is being moved, split, merged", ids[1]);
    assert!(one.contains(&named), "{one}");
    server.shutdown().await;
}

/// Two partitions after a restart in which changes of the disk are refused, once or for ever.
async fn restarted(world: &World, when: When) -> IndexServer {
    let (server, partitions) = two(world).await;
    for partition in &partitions {
        let key = if partition.core.id == partitions[0].core.id { "a" } else { "z" };
        partition.apply(put(key, "1")).await.unwrap();
    }
    drop((server, partitions));
    world.capacity.crash();
    world.capacity.fail(when, Fault::Refused(capacity::Error::Full));
    IndexServer::open_with(vec![world.deps()], world.config, &[]).await.unwrap()
}

fn closed(server: &IndexServer) -> PartitionId {
    server.hosts.first().unwrap().opened.closed().first().unwrap().descriptor.id
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_does_not_open_yet_is_named_and_waited_for() {
    let log = CapturedLog::default();
    let _lines = log.begin();
    let world = World::empty();
    let server = restarted(&world, When::Once(0)).await;
    let id = closed(&server);
    assert_eq!(server.consistent_cut().await.unwrap().partitions.len(), 2);
    let warnings = log.lines_with(&["no cut", &format!("partition {id} does not open yet")]);
    assert!(warnings > 0);
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_out_of_service_refuses_the_cut() {
    let world = World::empty();
    let server = restarted(&world, When::From(1)).await;
    let id = closed(&server);
    let clock = Arc::clone(&server.deps().unwrap().env.clock);
    // Until requests of its names are refused too.
    clock.sleep(Duration::from_secs(10)).await;
    let began = clock.monotonic();
    let refused = server.consistent_cut().await;
    assert!(
        matches!(refused, Err(CutError::Failed(Error::Corrupt(Damage::Quarantined(of)))) if of == id),
        "{refused:?}"
    );
    assert_eq!(clock.monotonic(), began, "at once");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_partition_and_a_busy_time_after_it_do_not_add_up() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let (slow, busy) = (PATIENCE - PAUSE_FIRST / 4, PAUSE_FIRST);
    let partition = Arc::clone(&partitions[1]);
    let held = async {
        for each in [slow, busy] {
            hold_often(Arc::clone(&partition), each, 1).await;
        }
    };
    let ((), made) = tokio::join!(held, server.consistent_cut());
    assert_eq!(made.unwrap().partitions.len(), 2);
    server.shutdown().await;
}

/// The time of the slowest write, and the cut.
type Seen = (Duration, Result<ConsistentCut, CutError>);

/// Has a partition stand still again and again, each time for so long, as merges would.
async fn hold_often(partition: Arc<Partition>, each: Duration, times: usize) {
    for _ in 0..times {
        let held = partition.pause().await.unwrap();
        tokio::time::sleep(each).await;
        drop(held);
    }
}

/// The slowest write to one partition, and the cut, while another one is held so.
async fn slowest_while_held(server: &IndexServer, all: &[Arc<Partition>], each: Duration) -> Seen {
    tokio::select! {
        biased;
        () = hold_often(Arc::clone(&all[1]), each, usize::MAX) => unreachable!("it never ends"),
        seen = slowest_write(server, &all[0]) => seen,
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_often_stands_still_for_long_stops_no_other_for_long() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let clock = Arc::clone(&server.deps().unwrap().env.clock);
    let began = clock.monotonic();
    let seen = slowest_while_held(&server, &partitions, Duration::from_secs(3)).await;
    let (longest, refused) = seen;
    assert!(longest <= PAUSE_MAX, "{longest:?}");
    assert!(longest > PAUSE_FIRST, "later tries take longer: {longest:?}");
    let Err(CutError::Failed(Error::Unavailable(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains(&format!("partition {}", partitions[1].core.id)), "{why}");
    let tried = clock.monotonic() - began;
    assert!(tried >= GIVE_UP, "{tried:?}");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn partitions_that_are_slow_to_stand_still_get_more_time_in_later_tries() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let each = PAUSE_FIRST / 2 + Duration::from_millis(300);
    let (longest, made) = slowest_while_held(&server, &partitions, each).await;
    assert_eq!(made.unwrap().partitions.len(), 2);
    assert!(longest <= PAUSE_MAX, "{longest:?}");
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_is_tried_until_a_busy_time_is_over() {
    let world = World::empty();
    let (server, partitions) = two(&world).await;
    let busy = hold_often(Arc::clone(&partitions[1]), Duration::from_secs(3), 30);
    let ((), made) = tokio::join!(busy, server.consistent_cut());
    assert_eq!(made.unwrap().partitions.len(), 2);
    server.shutdown().await;
}

/// Tries a cut while one partition is written to. Returns the time of the slowest write.
async fn slowest_write(server: &IndexServer, partition: &Partition) -> Seen {
    let clock = Arc::clone(&server.deps().unwrap().env.clock);
    let mut longest = Duration::ZERO;
    let writes = async {
        for number in 0.. {
            let began = clock.monotonic();
            partition.apply(put("a", &u64::to_string(&number))).await.unwrap();
            longest = longest.max(clock.monotonic() - began);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let made = tokio::select! {
        biased;
        () = writes => unreachable!("it never ends"),
        made = server.consistent_cut() => made,
    };
    (longest, made)
}
