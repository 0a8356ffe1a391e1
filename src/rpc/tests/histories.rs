//! Random calls over a network that fails: each is carried out once at most, and what is said of it
//! is true.

use std::sync::Mutex;

use futures_util::future::join;
use futures_util::future::join_all;

use super::service::Wait;
use super::service::Write;
use super::*;
use crate::env::Rand;

const SEEDS: u64 = 150;
const CALLS: u64 = 60;

/// What the caller was told of each call.
type Told = Mutex<Vec<(u64, Result<(), CallError>)>>;

async fn call(world: &World, peer: &RemoteNode, rand: &SeededRand, number: u64, told: &Told) {
    pause(rand.below(400)).await;
    let bounds = Bounds { time: Duration::from_millis(1 + rand.below(60)), answer_bytes_max: 100 };
    // A third is large.
    let payload = if rand.below(3) == 0 { vec![piece(100_000)] } else { Vec::new() };
    let asked = (rand.below(10), number);
    let calling = peer.call::<Write>(&asked, payload, bounds);
    // Some callers go.
    if rand.below(8) == 0 {
        drop(tokio::time::timeout(Duration::from_millis(rand.below(20)), calling).await);
    } else {
        let outcome = calling.await.map(|_| ());
        told.lock().unwrap().push((number, outcome));
    }
    assert!(world.net.connections() < 200);
}

const CREDIT: Credit = Credit { calls: 4, bytes: 32_768 };

fn serve(world: &World) -> Tasks {
    world.serve_with(|config| config.small_credit = CREDIT)
}

/// The server's process ends and another one starts. It has met nobody.
async fn restart(world: &World, rand: &SeededRand, serving: &mut Tasks) {
    let two = address(2);
    serving.stopping().cancel();
    if rand.below(2) == 0 {
        world.net.kill(two);
    } else {
        world.net.power_off(two);
        pause(rand.below(30)).await;
        world.net.power_on(two);
    }
    *serving = serve(world);
}

async fn harm(world: &World, rand: &SeededRand, mut serving: Tasks) {
    let (one, two) = (address(1), address(2));
    for _ in 0..8 {
        pause(rand.below(80)).await;
        match rand.below(4) {
            0 => world.net.cut(one, two),
            1 => {
                let (from, to) = if rand.below(2) == 0 { (one, two) } else { (two, one) };
                world.net.block(from, to);
                pause(rand.below(30)).await;
                world.net.unblock(from, to);
            }
            2 => restart(world, rand, &mut serving).await,
            _ => {
                let delay = Duration::from_millis(rand.below(10));
                world.net.set_delay(one, two, delay..delay + Duration::from_millis(5));
            }
        }
    }
}

async fn history(seed: u64) -> (usize, usize, usize) {
    let world = World::new(seed);
    let serving = serve(&world);
    let rand = SeededRand::new(seed);
    let peer = world.peer();
    let told = Told::default();
    let calls = join_all((0..CALLS).map(|number| call(&world, &peer, &rand, number, &told)));
    join(calls, harm(&world, &rand, serving)).await;
    pause(60_000).await;
    let written = world.book.written.lock().unwrap().clone();
    let times = |number| written.iter().filter(|one| **one == number).count();
    assert!((0..CALLS).all(|number| times(number) <= 1), "seed {seed}: {written:?}");
    let told = told.into_inner().unwrap();
    let (mut done, mut not_done, mut unknown) = (0, 0, 0);
    for (number, outcome) in told {
        match outcome {
            Ok(()) => {
                assert_eq!(times(number), 1, "seed {seed}: {number} was answered");
                done += 1;
            }
            Err(CallError::NotDone(why)) => {
                assert_eq!(times(number), 0, "seed {seed}: {number}, {why}");
                not_done += 1;
            }
            Err(CallError::Unknown(_)) => unknown += 1,
        }
    }
    // It serves when the network does.
    world.net.set_delay(address(1), address(2), DELAY);
    peer.call::<Write>(&(0, CALLS), Vec::new(), within(5000)).await.unwrap();
    // And no credit was lost on the connections that are still there: as many calls as were granted
    // run at once, small ones and large ones.
    let begun = world.env.clock.monotonic();
    let small = join_all((0..4).map(|_| peer.call::<Wait>(&1000, Vec::new(), within(5000))));
    let bulk = Bounds { answer_bytes_max: 1 << 20, ..within(5000) };
    let bulk = join_all((0..60).map(|_| peer.call::<Wait>(&1000, Vec::new(), bulk)));
    let (small, bulk) = join(small, bulk).await;
    assert!(small.iter().chain(&bulk).all(Result::is_ok), "seed {seed}");
    let took = world.env.clock.monotonic() - begun;
    assert!(took < Duration::from_millis(1500), "seed {seed}: {took:?}");
    (done, not_done, unknown)
}

#[test]
fn what_is_said_of_calls_is_true_on_a_failing_network() {
    let (mut done, mut not_done, mut unknown) = (0, 0, 0);
    for seed in 0..SEEDS {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let ended = runtime.block_on(history(seed));
        (done, not_done, unknown) = (done + ended.0, not_done + ended.1, unknown + ended.2);
    }
    // Each outcome is common.
    assert!(done > 2000 && not_done > 100 && unknown > 100, "{done}, {not_done}, {unknown}");
}
