mod failing;
mod growing;
mod steady;

use std::collections::BTreeMap;

use super::*;
use crate::index::Load;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::Stripe;

/// A key space of numbers, partitions that share a load on it, and a policy that cuts them.
struct Space {
    policy: Policy,
    ranges: BTreeMap<PartitionId, KeyRange>,
    next: u64,
    now: Duration,
    splits: usize,
    merges: usize,
    hosts: BTreeMap<PartitionId, HostId>,
    /// Seconds of a processor that one request takes.
    cost: f64,
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
            cost: 0.0,
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
                let load = Load { writes: requests, cpu: requests * self.cost, ..Load::default() };
                PartitionLoad { id: *id, range: range.clone(), host, load, ..calm() }
            })
            .collect();
        loads.sort_by(|a, b| a.range.low().cmp(b.range.low()));
        let ranges = &self.ranges;
        let hosts: Vec<HostId> = (0..HOSTS).map(HostId::new).collect();
        let plans = self.policy.tick(self.now, &hosts, &loads, &mut |id| inside(&ranges[&id]));
        for plan in &plans {
            match plan {
                Plan::Split(id, keys) => self.split(*id, keys),
                Plan::SplitEvenly(id, _) => panic!("{id} has no rows"),
                Plan::Stripe(id, ..) => panic!("{id} is in no container"),
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
    for _ in 0..16 {
        space.tick(40_000.0, &keys);
    }
    assert!(space.hottest(&keys) * 40_000.0 <= 5_000.0 * 1.5, "{}", space.hottest(&keys));
    let (splits, partitions) = (space.splits, space.ranges.len());
    for _ in 0..120 {
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
    for n in 0..600 {
        let keys: Vec<u64> = (n * 100..n * 100 + 100).collect();
        if let Some(plan) = space.tick(9_000.0, &keys).first() {
            let behind = vec![RoutingKey::from_bytes(key(n * 100 + 99))];
            assert_eq!(*plan, Plan::Split(PartitionId::new(0), behind));
            cut = Some(n);
            break;
        }
    }
    assert_eq!(cut, Some(480), "once a minute");
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

fn calm() -> PartitionLoad {
    PartitionLoad {
        id: PartitionId::new(1),
        range: KeyRange::all(),
        stripe: None,
        host: HostId::new(0),
        load: Load { reads: 900.0, ..Load::default() },
        rows: 0,
        bytes: 0,
        changing: false,
    }
}

/// The first plan for one partition with the same load for ten ticks, and in which tick it is made.
fn first(load: &PartitionLoad, samples: &[Bytes]) -> Option<(u32, Plan)> {
    let mut policy = Policy::new(PolicyConfig::default());
    // It has been there for a while.
    let loads = std::slice::from_ref(load);
    let quiet = PartitionLoad { load: Load::default(), rows: 0, bytes: 0, ..load.clone() };
    assert_eq!(policy.tick(Duration::ZERO, &[load.host], &[quiet], &mut |_| Vec::new()), []);
    (1..11).find_map(|n| {
        let now = Duration::from_secs(5) + TICK * n;
        let plans = policy.tick(now, &[load.host], loads, &mut |_| samples.to_vec());
        plans.into_iter().next().map(|plan| (n, plan))
    })
}

#[test]
fn requests_processor_and_waiting_are_reasons_in_the_third_tick() {
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    assert_eq!(first(&calm(), &samples), None);
    let slow = Duration::from_millis(21);
    let base = Load { reads: 900.0, ..Load::default() };
    for load in [
        Load { writes: 4_101.0, ..base },
        Load { lists: 4_101.0, ..base },
        Load { cpu: 0.61, ..base },
        Load { queue_age: slow, ..base },
    ] {
        let hot = PartitionLoad { load, ..calm() };
        let Some((3, Plan::Split(_, keys))) = first(&hot, &samples) else { panic!("{load:?}") };
        assert!(keys.iter().all(|at| (20..80).any(|n| at.as_bytes() == &key(n))));
    }
    // On a machine with too much to do writes wait everywhere.
    let waits = Load { reads: 400.0, cpu: 0.05, queue_age: slow, ..Load::default() };
    assert_eq!(first(&PartitionLoad { load: waits, ..calm() }, &samples), None);
    let short = Load { queue_age: Duration::from_millis(19), ..base };
    assert_eq!(first(&PartitionLoad { load: short, ..calm() }, &samples), None);
}

#[test]
fn waiting_of_one_tick_is_no_reason() {
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    let mut policy = Policy::new(PolicyConfig::default());
    for n in 0..100u32 {
        let queue_age = Duration::from_millis(if n % 2 == 0 { 500 } else { 1 });
        let load = Load { writes: 2_000.0, queue_age, ..Load::default() };
        let loads = [PartitionLoad { load, ..calm() }];
        let hosts = [HostId::new(0)];
        assert_eq!(policy.tick(TICK * n, &hosts, &loads, &mut |_| samples.clone()), [], "{n}");
    }
}

#[test]
fn size_is_a_reason_without_any_load_and_asked_for_once_a_minute() {
    let id = calm().id;
    let idle = PartitionLoad { load: Load::default(), ..calm() };
    let rows = PartitionLoad { rows: 20_000_001, ..idle.clone() };
    let bytes = PartitionLoad { bytes: 33 << 30, ..idle.clone() };
    let fits = PartitionLoad { rows: 20_000_000, bytes: 8 << 30, ..idle };
    assert_eq!(first(&rows, &[]), Some((1, Plan::SplitEvenly(id, 3))));
    assert_eq!(first(&bytes, &[]), Some((1, Plan::SplitEvenly(id, 8))));
    assert_eq!(first(&fits, &[]), None);
    // Load is a better guide to where to split.
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    let hot = Load { cpu: 2.0, ..Load::default() };
    let hot = PartitionLoad { load: hot, rows: 0, ..calm() };
    assert!(matches!(first(&hot, &samples), Some((3, Plan::Split(_, _)))));
    // One blob with all the rows, say, cannot be cut.
    let mut policy = Policy::new(PolicyConfig::default());
    let asked = (0..4 * 480u32).filter(|n| {
        let loads = std::slice::from_ref(&rows);
        !policy.tick(TICK * *n, &[HostId::new(0)], loads, &mut |_| Vec::new()).is_empty()
    });
    assert_eq!(asked.count(), 4, "in four minutes");
}

#[test]
fn hosts_are_balanced_by_processor_where_that_is_scarce() {
    let mut space = Space::new(PolicyConfig::default());
    // A thousand lists a second that keep two processors busy.
    space.cost = 0.002;
    let keys = spread(600);
    for _ in 0..40 {
        space.tick(1_000.0, &keys);
    }
    assert!(space.ranges.len() >= 4, "{}", space.ranges.len());
    assert!(space.busiest(&keys) <= 1.5 / HOSTS as f64, "{}", space.busiest(&keys));
}

#[test]
fn no_more_of_the_load_moves_in_a_tick_than_the_budget() {
    let config = PolicyConfig::default();
    let part = |n: u64, requests: f64| PartitionLoad {
        id: PartitionId::new(n),
        range: KeyRange::new(
            RoutingKey::from_bytes(key(n)),
            Some(RoutingKey::from_bytes(key(n + 1))),
        ),
        load: Load { reads: requests, ..Load::default() },
        ..calm()
    };
    let hosts: Vec<HostId> = (0..HOSTS).map(HostId::new).collect();
    let moved = |loads: &[PartitionLoad]| {
        let plans = Policy::new(config).tick(TICK, &hosts, loads, &mut |_| Vec::new());
        let of = |plan: &Plan| match plan {
            Plan::Move(id, _) => loads.iter().find(|load| load.id == *id).unwrap().load.requests(),
            Plan::Split(..) | Plan::SplitEvenly(..) | Plan::Stripe(..) | Plan::Merge(_) => {
                panic!("{plan:?}")
            }
        };
        (plans.len(), plans.iter().map(of).sum::<f64>())
    };
    let few: Vec<PartitionLoad> = (0..8).map(|n| part(n, 4_000.0)).collect();
    assert_eq!(moved(&few), (1, 4_000.0), "one may always");
    let many: Vec<PartitionLoad> = (0..100).map(|n| part(n, 300.0)).collect();
    assert_eq!(moved(&many), (config.moves_per_tick, 1_200.0));
    let some: Vec<PartitionLoad> = (0..50).map(|n| part(n, 600.0)).collect();
    assert_eq!(moved(&some), (2, 1_200.0), "of 30,000");
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
    let minutes = |count: u32| count * 60 * 8;
    // Ten seconds of load every five minutes.
    for _ in 0..6 {
        for _ in 0..80 {
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

/// Found by a burst that began just before a tick: one early key was taken for the highest there
/// was.
#[test]
fn names_that_come_in_no_order_do_not_seem_to_grow_after_one_early_sample() {
    let mut policy = Policy::new(PolicyConfig::default());
    let hosts = [HostId::new(0)];
    let load = Load { writes: 20_000.0, ..Load::default() };
    let loads = [PartitionLoad { load, ..calm() }];
    let early: Vec<Bytes> = vec![key(0)];
    let later: Vec<Bytes> = (0..100).map(key).collect();
    assert_eq!(policy.tick(Duration::ZERO, &hosts, &loads, &mut |_| early.clone()), []);
    let mut plans = Vec::new();
    for n in 1..4u32 {
        let now = Duration::from_secs(60) + TICK * n;
        plans.extend(policy.tick(now, &hosts, &loads, &mut |_| later.clone()));
    }
    let Some(Plan::Split(_, keys)) = plans.first() else { panic!("{plans:?}") };
    assert_eq!(keys.len(), 7, "between, not behind");
}

#[test]
fn what_is_under_a_change_is_left_alone_and_counts_where_it_goes_to() {
    let samples: Vec<Bytes> = (0..100).map(key).collect();
    let hot = Load { writes: 20_000.0, ..Load::default() };
    let changing = PartitionLoad { load: hot, rows: 90_000_000, changing: true, ..calm() };
    assert_eq!(first(&changing, &samples), None);

    let config = PolicyConfig::default();
    let mut policy = Policy::new(config);
    let hosts = [HostId::new(0), HostId::new(1)];
    let part = |n: u64| PartitionLoad {
        id: PartitionId::new(n),
        range: KeyRange::new(
            RoutingKey::from_bytes(key(n)),
            Some(RoutingKey::from_bytes(key(n + 1))),
        ),
        load: Load { reads: 4_000.0, ..Load::default() },
        ..calm()
    };
    let mut loads: Vec<PartitionLoad> = (0..4).map(part).collect();
    for n in 0..20u32 {
        let plans = policy.tick(TICK * n, &hosts, &loads, &mut |_| Vec::new());
        for plan in plans {
            let Plan::Move(id, to) = plan else { panic!("{plan:?}") };
            assert_eq!(to, hosts[1]);
            let load = loads.iter_mut().find(|load| load.id == id).unwrap();
            assert!(!std::mem::replace(&mut load.changing, true), "{id} moves twice");
        }
    }
    assert_eq!(loads.iter().filter(|load| load.changing).count(), 2, "moves take long");
    // Nothing is merged while anything changes.
    let cold = Load { reads: 1.0, ..Load::default() };
    loads.iter_mut().for_each(|load| load.load = cold);
    let mut later = |minutes: u64, loads: &[PartitionLoad]| {
        let now = Duration::from_secs(minutes * 60);
        policy.tick(now, &hosts, loads, &mut |_| Vec::new())
    };
    assert_eq!(later(1, &loads), []);
    assert_eq!(later(20, &loads), []);
    loads.iter_mut().for_each(|load| load.changing = false);
    assert!(matches!(later(21, &loads)[..], [Plan::Merge(_)]));
}
