//! Changes that do not come about: the partition takes no writes, say.

use super::*;

/// The partition of numbers from `from` to `to`.
fn part(from: u64, to: u64, load: Load) -> PartitionLoad {
    let bound = |n| RoutingKey::from_bytes(key(n));
    let range = KeyRange::new(bound(from), Some(bound(to)));
    PartitionLoad { id: PartitionId::new(from), range, load, ..calm() }
}

/// The plans of a minute for partitions that stay as they are.
fn plans(loads: &[PartitionLoad], from: Duration, policy: &mut Policy) -> Vec<Plan> {
    let samples = |id: PartitionId| (id.get()..id.get() + 100).map(key).collect();
    let ticks = (0..480_u32).flat_map(|n| {
        policy.tick(from + TICK * n, &[HostId::new(0)], loads, &mut |id| samples(id))
    });
    ticks.collect()
}

#[test]
fn splits_that_fail_keep_no_other_waiting() {
    let hot = |n: u64, writes: f64| part(n, n + 100, Load { writes, ..Load::default() });
    let loads = [hot(0, 90_000.0), hot(100, 80_000.0), hot(200, 6_000.0)];
    let plans = plans(&loads, Duration::ZERO, &mut Policy::new(PolicyConfig::default()));
    let of = |n: u64| {
        let is_it = |plan: &&Plan| matches!(plan, Plan::Split(id, _) if *id == PartitionId::new(n));
        plans.iter().filter(is_it).count()
    };
    assert!(of(200) > 10, "{}", of(200));
    assert!((30..=60).contains(&of(0)), "once a second, not {} times", of(0));
}

#[test]
fn merges_that_fail_keep_no_other_waiting_and_are_not_tried_all_the_time() {
    let large = PartitionLoad { rows: 19_000_000, ..part(20, 30, Load::default()) };
    let cold = |from, to| part(from, to, Load::default());
    let loads = [cold(0, 10), cold(10, 20), large, cold(30, 40), cold(40, 50)];
    let (mut policy, config) = (Policy::new(PolicyConfig::default()), PolicyConfig::default());
    assert_eq!(policy.tick(Duration::ZERO, &[HostId::new(0)], &loads, &mut |_| Vec::new()), []);
    let merge = |a, b| Plan::Merge(vec![PartitionId::new(a), PartitionId::new(b)]);
    assert_eq!(plans(&loads, config.cold_for, &mut policy), [merge(0, 10), merge(30, 40)]);
}

#[test]
fn stripes_that_are_too_busy_to_be_merged_are_tried_every_few_seconds() {
    let stripe = |n: u64, stripe| {
        let large = part(0, 10, Load { writes: 4_000.0, ..Load::default() });
        PartitionLoad { id: PartitionId::new(n), stripe, rows: 21_000_000, ..large }
    };
    let loads: Vec<_> = (0..).zip(Stripe::all(2)).map(|(n, s)| stripe(n, Some(s))).collect();
    let plans = plans(&loads, Duration::ZERO, &mut Policy::new(PolicyConfig::default()));
    let both = Plan::Merge(loads.iter().map(|load| load.id).collect());
    assert_eq!(plans, vec![both; 12]);
}
