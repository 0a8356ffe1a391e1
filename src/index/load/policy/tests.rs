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
    merges: usize,
    hosts: BTreeMap<PartitionId, HostId>,
}

const HOSTS: u64 = 4;

fn key(n: u64) -> Bytes {
    Bytes::copy_from_slice(&n.to_be_bytes())
}

impl Space {
    fn new(config: PolicyConfig) -> Self {
        let ranges = BTreeMap::from([(PartitionId::new(0), KeyRange::all())]);
        Self {
            policy: Policy::new(config),
            ranges,
            next: 1,
            now: Duration::ZERO,
            splits: 0,
            merges: 0,
            hosts: BTreeMap::new(),
        }
    }

    /// One tick in which `rate` requests a second go to `keys`, evenly.
    fn tick(&mut self, rate: f64, keys: &[u64]) -> Vec<Plan> {
        self.now += TICK;
        let inside = |range: &KeyRange| {
            let mut inside: Vec<Bytes> =
                keys.iter().map(|n| key(*n)).filter(|key| range.contains(key)).collect();
            inside.sort();
            inside
        };
        let mut loads: Vec<PartitionLoad> = self
            .ranges
            .iter()
            .map(|(id, range)| {
                let requests = rate * inside(range).len() as f64 / keys.len() as f64;
                let host = self.hosts.get(id).copied().unwrap_or(HostId::new(0));
                PartitionLoad { id: *id, range: range.clone(), host, requests, rows: 0 }
            })
            .collect();
        loads.sort_by(|a, b| a.range.low().cmp(b.range.low()));
        let ranges = &self.ranges;
        let hosts: Vec<HostId> = (0..HOSTS).map(HostId::new).collect();
        let plans = self.policy.tick(self.now, &hosts, &loads, &mut |id| inside(&ranges[&id]));
        for plan in &plans {
            match plan {
                Plan::Split(id, keys) => self.split(*id, keys),
                Plan::Move(id, host) => drop(self.hosts.insert(*id, *host)),
                Plan::Merge(ids) => self.merge(ids),
            }
        }
        plans
    }

    fn merge(&mut self, ids: &[PartitionId]) {
        let parts: Vec<KeyRange> = ids.iter().map(|id| self.ranges.remove(id).unwrap()).collect();
        assert!(parts.windows(2).all(|pair| pair[0].high() == Some(pair[1].low())));
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        let merged = KeyRange::new(first.low().clone(), last.high().cloned());
        self.ranges.insert(PartitionId::new(self.next), merged);
        self.next += 1;
        self.merges += 1;
    }

    /// The share of all requests that the busiest host has.
    fn busiest(&self, keys: &[u64]) -> f64 {
        let mut of_host = BTreeMap::<HostId, usize>::new();
        for (id, range) in &self.ranges {
            let host = self.hosts.get(id).copied().unwrap_or(HostId::new(0));
            let count = keys.iter().filter(|n| range.contains(&key(**n))).count();
            *of_host.entry(host).or_default() += count;
        }
        of_host.values().copied().max().unwrap() as f64 / keys.len() as f64
    }

    fn split(&mut self, partition: PartitionId, keys: &[RoutingKey]) {
        let range = self.ranges.remove(&partition).expect("a partition there is");
        let host = self.hosts.get(&partition).copied().unwrap_or(HostId::new(0));
        let mut low = range.low().clone();
        for high in keys.iter().cloned().map(Some).chain([range.high().cloned()]) {
            let id = PartitionId::new(self.next);
            self.next += 1;
            self.ranges.insert(id, KeyRange::new(low, high.clone()));
            self.hosts.insert(id, host);
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
        space.tick(50_000.0, &keys);
    }
    assert_eq!(space.splits, 0);
}

#[test]
fn growing_names_are_cut_behind_the_newest() {
    let mut space = Space::new(PolicyConfig::default());
    let mut cut = None;
    for n in 0..300 {
        let keys: Vec<u64> = (n * 100..n * 100 + 100).collect();
        if let Some(plan) = space.tick(9_000.0, &keys).first() {
            let behind = vec![RoutingKey::from_bytes(key(n * 100 + 99))];
            assert_eq!(*plan, Plan::Split(PartitionId::new(0), behind));
            cut = Some(n);
            break;
        }
    }
    assert_eq!(cut, Some(240), "once a minute");
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
        let before = space.splits;
        space.tick(1e6, &keys);
        assert!(space.splits - before <= config.splits_per_tick);
    }
    assert!(space.ranges.len() <= 40);
    assert!(space.ranges.len() > 30, "{}", space.ranges.len());
}

#[test]
fn many_requests_or_many_rows_are_reasons() {
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    let one = [HostId::new(0)];
    let calm = PartitionLoad {
        id: PartitionId::new(1),
        range: KeyRange::all(),
        host: one[0],
        requests: 10.0,
        rows: 0,
    };
    let first = |load: &PartitionLoad| {
        let mut policy = Policy::new(PolicyConfig::default());
        (0..10u32).find_map(|n| {
            policy.tick(TICK * n, &one, std::slice::from_ref(load), &mut |_| samples.clone()).pop()
        })
    };
    for load in [
        PartitionLoad { requests: 5_000.1, ..calm.clone() },
        PartitionLoad { rows: 30_000_000, ..calm.clone() },
    ] {
        let Some(Plan::Split(_, keys)) = first(&load) else { panic!("a split") };
        assert!(keys.iter().all(|at| (20..80).any(|n| at.as_bytes() == &key(n))));
    }
    assert_eq!(first(&calm), None);
}

#[test]
fn hosts_share_the_load_of_a_burst_within_seconds_and_partitions_stay_where_they_are() {
    let mut space = Space::new(PolicyConfig::default());
    let keys = spread(600);
    for _ in 0..40 {
        space.tick(40_000.0, &keys);
    }
    let even = 1.0 / HOSTS as f64;
    assert!(space.busiest(&keys) <= 1.5 * even, "{}", space.busiest(&keys));
    let before = space.hosts.clone();
    for _ in 0..400 {
        space.tick(40_000.0, &keys);
    }
    assert_eq!(space.hosts, before, "nothing moves while nothing changes");
}

#[test]
fn what_was_split_is_merged_only_when_the_load_has_been_away_for_long() {
    let config = PolicyConfig::default();
    let mut space = Space::new(config);
    let keys = spread(600);
    let minutes = |count: u32| count * 60 * 4;
    // Ten seconds of load every five minutes.
    for _ in 0..6 {
        for _ in 0..40 {
            space.tick(40_000.0, &keys);
        }
        for _ in 0..minutes(5) {
            space.tick(100.0, &keys);
        }
    }
    assert_eq!(space.merges, 0);
    let split = space.ranges.len();
    assert!(split >= 8, "{split}");
    for _ in 0..minutes(6) {
        space.tick(100.0, &keys);
    }
    assert_eq!(space.ranges.len(), 1, "of {split}");
}
