//! Steady load of few requests: what a tick counts is mostly chance, and no reason to move
//! anything.

use super::*;
use crate::env::Rand;
use crate::env::SeededRand;

/// How many of requests that come by chance fall into one tick, `mean` on average.
fn poisson(rand: &SeededRand, mean: f64) -> u64 {
    let (limit, mut product) = ((-mean).exp(), 1.0);
    for count in 0.. {
        product *= (rand.below(1 << 32) as f64 + 1.0) / (1u64 << 32) as f64;
        if product < limit {
            return count;
        }
    }
    0
}

/// Partitions with this many requests a second each, on two hosts; counts moves.
struct Steady {
    policy: Policy,
    rand: SeededRand,
    now: Duration,
    hosts: Vec<u64>,
    moves: usize,
}

impl Steady {
    fn new(seed: u64, hot_requests: f64, hosts: &[u64]) -> Self {
        // What is measured is moves: nothing is merged or split here.
        let config = PolicyConfig {
            hot_requests,
            hot_ticks: u32::MAX,
            cold_for: Duration::MAX,
            ..PolicyConfig::default()
        };
        let (policy, rand) = (Policy::new(config), SeededRand::new(seed));
        Self { policy, rand, now: Duration::ZERO, hosts: hosts.to_vec(), moves: 0 }
    }

    fn run(&mut self, seconds: u64, rates: &[f64]) {
        let end = self.now + Duration::from_secs(seconds);
        let hosts = [HostId::new(0), HostId::new(1)];
        while self.now < end {
            self.now += TICK;
            let count = |rate: f64| poisson(&self.rand, rate * TICK.as_secs_f64()) as f64;
            let loads: Vec<PartitionLoad> = (1..)
                .zip(rates.iter().zip(&self.hosts))
                .map(|(id, (rate, host))| {
                    let writes = count(*rate) / TICK.as_secs_f64();
                    let load = Load { writes, cpu: writes * 0.000_1, ..Load::default() };
                    let low = RoutingKey::from_bytes(key(id - 1));
                    let range = KeyRange::new(low, Some(RoutingKey::from_bytes(key(id))));
                    let (id, host) = (PartitionId::new(id), HostId::new(*host));
                    PartitionLoad { id, range, host, load, ..calm() }
                })
                .collect();
            for plan in self.policy.tick(self.now, &hosts, &loads, &mut |_| Vec::new()) {
                let Plan::Move(id, to) = plan else { panic!("{plan:?}") };
                self.hosts[usize::try_from(id.get()).unwrap() - 1] = to.number();
                self.moves += 1;
            }
        }
    }
}

#[test]
fn load_that_cannot_be_evened_out_is_left_alone() {
    for seed in 0..5 {
        // Two to one is as even as three get, and so is three to two of five.
        for rates in [&[20.0; 3][..], &[15.0; 5], &[2.0; 3], &[400.0; 3]] {
            let hosts: Vec<u64> = (0..rates.len() as u64).map(|number| number % 2).collect();
            let mut steady = Steady::new(seed, rates[0] * 1.5, &hosts);
            steady.run(1_800, rates);
            assert_eq!(steady.moves, 0, "seed {seed}, {rates:?}");
        }
    }
}

#[test]
fn load_that_can_be_evened_out_is_moved_once() {
    for seed in 0..5 {
        for rate in [10.0, 40.0, 1_000.0] {
            let mut steady = Steady::new(seed, rate * 1.5, &[0; 4]);
            steady.run(60, &[rate; 4]);
            assert_eq!(steady.hosts.iter().sum::<u64>(), 2, "seed {seed}: {:?}", steady.hosts);
            assert_eq!(steady.moves, 2, "seed {seed}");
        }
    }
}

/// A partition that was quiet and is not any more is noticed within seconds.
#[test]
fn load_that_changes_is_followed() {
    for seed in 0..5 {
        let mut steady = Steady::new(seed, 300.0, &[0, 0, 1, 1]);
        steady.run(60, &[100.0; 4]);
        assert_eq!(steady.moves, 0, "seed {seed}");
        steady.run(10, &[250.0, 250.0, 40.0, 40.0]);
        assert_eq!(steady.hosts[0] + steady.hosts[1], 1, "seed {seed}: {:?}", steady.hosts);
        let moves = steady.moves;
        steady.run(600, &[250.0, 250.0, 40.0, 40.0]);
        assert!(steady.moves <= moves + 1, "seed {seed}: {} moves", steady.moves);
    }
}
