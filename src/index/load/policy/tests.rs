use std::collections::BTreeMap;

use super::*;

const TICK: Duration = Duration::from_millis(250);

/// A key space of numbers, partitions that share a load on it, and a policy that cuts them.
struct Space {
    policy: Policy,
    ranges: BTreeMap<PartitionId, KeyRange>,
    next: u64,
    now: Duration,
    splits: usize,
}

fn key(n: u64) -> Bytes {
    Bytes::copy_from_slice(&n.to_be_bytes())
}

impl Space {
    fn new(config: PolicyConfig) -> Self {
        let ranges = BTreeMap::from([(PartitionId::new(0), KeyRange::all())]);
        Self { policy: Policy::new(config), ranges, next: 1, now: Duration::ZERO, splits: 0 }
    }

    /// One tick in which `rate` requests a second go to `keys`, evenly.
    fn tick(&mut self, rate: f64, keys: &[u64]) -> Vec<SplitPlan> {
        self.now += TICK;
        let loads: Vec<PartitionLoad> = self
            .ranges
            .iter()
            .map(|(id, range)| {
                let mut samples: Vec<Bytes> =
                    keys.iter().map(|n| key(*n)).filter(|key| range.contains(key)).collect();
                samples.sort();
                let requests = rate * samples.len() as f64 / keys.len() as f64;
                PartitionLoad { id: *id, range: range.clone(), requests, rows: 0, samples }
            })
            .collect();
        let plans = self.policy.tick(self.now, &loads);
        for plan in &plans {
            self.split(plan);
        }
        plans
    }

    fn split(&mut self, plan: &SplitPlan) {
        let range = self.ranges.remove(&plan.partition).expect("a partition there is");
        let mut low = range.low().clone();
        for high in plan.keys.iter().cloned().map(Some).chain([range.high().cloned()]) {
            let id = PartitionId::new(self.next);
            self.next += 1;
            self.ranges.insert(id, KeyRange::new(low, high.clone()));
            low = high.unwrap_or_else(RoutingKey::min);
        }
        self.splits += 1;
    }

    fn hottest(&self, keys: &[u64]) -> f64 {
        let count = |range: &KeyRange| keys.iter().filter(|n| range.contains(&key(**n))).count();
        let most = self.ranges.values().map(count).max().unwrap();
        most as f64 / keys.len() as f64
    }
}

fn spread(count: u64) -> Vec<u64> {
    (0..count).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

#[test]
fn load_over_many_keys_is_spread_within_two_seconds_and_then_left_alone() {
    let mut space = Space::new(PolicyConfig::default());
    let keys = spread(600);
    for _ in 0..8 {
        space.tick(40_000.0, &keys);
    }
    assert!(space.hottest(&keys) * 40_000.0 <= 5_000.0 * 1.5, "{}", space.hottest(&keys));
    let (splits, partitions) = (space.splits, space.ranges.len());
    for _ in 0..60 {
        space.tick(40_000.0, &keys);
    }
    assert!(space.splits <= splits + 8, "{} then {}", splits, space.splits);
    assert!(space.ranges.len() <= partitions + 16);
}

#[test]
fn one_hot_key_is_not_split_for() {
    let mut space = Space::new(PolicyConfig::default());
    let mut keys = spread(600);
    keys.extend([7; 400]);
    for _ in 0..40 {
        assert_eq!(space.tick(50_000.0, &keys), []);
    }
}

#[test]
fn growing_names_are_cut_behind_the_newest() {
    let mut space = Space::new(PolicyConfig::default());
    let mut cut = None;
    for n in 0..12 {
        let keys: Vec<u64> = (n * 100..n * 100 + 100).collect();
        if let Some(plan) = space.tick(9_000.0, &keys).first() {
            assert_eq!(plan.keys, [RoutingKey::from_bytes(key(n * 100 + 99))]);
            cut = Some(n);
            break;
        }
    }
    assert!(cut.is_some());
}

#[test]
fn a_spike_of_one_tick_and_an_idle_store_change_nothing() {
    let mut space = Space::new(PolicyConfig::default());
    let keys = spread(500);
    for n in 0..100 {
        let rate = if n % 3 == 0 { 90_000.0 } else { 100.0 };
        assert_eq!(space.tick(rate, &keys), [], "tick {n}");
    }
    assert_eq!(space.tick(0.0, &[]), []);
}

#[test]
fn splits_in_a_tick_and_partitions_are_bounded() {
    let config = PolicyConfig { partitions_max: 40, hot_requests: 1.0, ..Default::default() };
    let mut space = Space::new(config);
    let keys = spread(2_000);
    for _ in 0..60 {
        assert!(space.tick(1e6, &keys).len() <= config.splits_per_tick);
    }
    assert!(space.ranges.len() <= 40);
    assert!(space.ranges.len() > 30, "{}", space.ranges.len());
}

#[test]
fn many_requests_or_many_rows_are_reasons() {
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    let calm = PartitionLoad {
        id: PartitionId::new(1),
        range: KeyRange::all(),
        requests: 10.0,
        rows: 0,
        samples,
    };
    for load in [
        PartitionLoad { requests: 5_000.1, ..calm.clone() },
        PartitionLoad { rows: 30_000_000, ..calm.clone() },
    ] {
        let mut policy = Policy::new(PolicyConfig::default());
        let plans: Vec<_> =
            (0..10u32).flat_map(|n| policy.tick(TICK * n, std::slice::from_ref(&load))).collect();
        assert!(plans[0].keys.iter().all(|at| (20..80).any(|n| at.as_bytes() == &key(n))));
    }
    let mut policy = Policy::new(PolicyConfig::default());
    assert!((0..10u32).all(|n| policy.tick(TICK * n, std::slice::from_ref(&calm)).is_empty()));
}
