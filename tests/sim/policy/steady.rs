//! Steady load and a low `--split-requests`: a tick counts a few requests, so its counts are mostly
//! chance. After the load is split and distributed over the hosts, there may be no further moves,
//! splits or merges.

use super::*;

const HOT_REQUESTS: f64 = 50.0;
/// Until then the load may be split and moved.
const SETTLED: f64 = 4.0 * MINUTE;
/// From then on the map may not change.
const WATCHED: f64 = 10.0 * MINUTE;

/// A random number of requests in a tick, with the average `mean`.
fn poisson(draw: &Draw, mean: f64) -> f64 {
    let (limit, mut product, mut count) = ((-mean).exp(), 1.0, 0.0);
    loop {
        product *= (draw.between(0, (1 << 32) - 1) as f64 + 1.0) / (1_u64 << 32) as f64;
        if product < limit {
            return count;
        }
        count += 1.0;
    }
}

/// Replaces each load by the count of a tick.
fn counted(draw: &Draw, loads: &mut [PartitionLoad]) {
    for one in loads {
        let writes = poisson(draw, one.load.writes * TICK.as_secs_f64()) / TICK.as_secs_f64();
        one.load = Load { writes, cpu: writes * WRITE_COST, ..Load::default() };
    }
}

#[test]
fn steady_load_of_few_requests_is_left_alone_once_it_is_shared_out() {
    for (seed, rate) in [(1, 120.0), (2, 300.0)] {
        let world = World::steady(rate);
        let config = PolicyConfig { hot_requests: HOT_REQUESTS, ..PolicyConfig::default() };
        let mut policy = Policy::new(config);
        let mut run = Run::new(&world, config, seed);
        let chance = Draw::new(seed + 100);
        let hosts: Vec<HostId> = (0..HOSTS).map(HostId::new).collect();
        let (mut at, mut before) = (0.0, None);
        while at < SETTLED + WATCHED {
            let mut loads = run.loads(at, &[]);
            counted(&chance, &mut loads);
            let now = Duration::from_secs_f64(at);
            let plans = {
                let run = &run;
                policy.tick(now, &hosts, &loads, &mut |id| run.samples(at, &[], id))
            };
            for plan in &plans {
                run.carry_out(at, plan);
            }
            if at >= SETTLED && before.is_none() {
                before = Some((run.out.splits, run.out.merges, run.out.moves));
            }
            at += TICK.as_secs_f64();
        }
        let (splits, merges, moves) = before.unwrap();
        let out = &run.out;
        println!(
            "{rate} requests a second: {splits} splits, {moves} moves, then {} and {}",
            out.splits, out.moves
        );
        assert!(splits > 0 && moves > 0, "there was nothing to share out");
        assert!(out.splits - splits <= 1, "{rate}: {} splits, then {}", splits, out.splits);
        assert!(out.merges == merges, "{rate}: {merges} merges, then {}", out.merges);
        assert!(out.moves - moves <= 2, "{rate}: {moves} moves, then {}", out.moves);
    }
}
