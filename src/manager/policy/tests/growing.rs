//! Names that grow, and the stripes they are dealt out to.

use super::*;

#[test]
fn stripes_are_neither_cut_nor_merged_with_some_of_them() {
    let hosts = [HostId::new(0)];
    let cut = RoutingKey::from_bytes(key(50));
    let left =
        PartitionLoad { range: KeyRange::new(RoutingKey::min(), Some(cut.clone())), ..calm() };
    let stripe = |n: u8| PartitionLoad {
        id: PartitionId::new(u64::from(n) + 2),
        range: KeyRange::new(cut.clone(), None),
        stripe: Stripe::new(n, 3),
        ..calm()
    };
    // One of them is between two hosts.
    let mut loads = [left, stripe(0), stripe(2)];
    let samples: Vec<Bytes> = (60..160).map(key).collect();
    let mut policy = Policy::new(PolicyConfig::default());
    for load in &mut loads[1..] {
        load.load.writes = 50_000.0;
    }
    for n in 0..100u32 {
        assert_eq!(policy.tick(TICK * n, &hosts, &loads, &mut |_| samples.clone()), []);
    }
    loads.iter_mut().for_each(|load| load.load = Load::default());
    for minute in 1..30 {
        let now = Duration::from_secs(60 * minute);
        assert_eq!(policy.tick(now, &hosts, &loads, &mut |_| Vec::new()), []);
    }
}

fn blob(container: u64, name: &str) -> RoutingKey {
    RoutingKey::blob(&crate::types::BlobKey {
        account: crate::types::AccountId::new(1),
        container: crate::types::ContainerId::new(container),
        collation: crate::types::Collation::Utf16,
        name: crate::types::BlobName::new(name).unwrap(),
    })
}

/// Names that grow are dealt out within a second; the stripes are left alone while there is load,
/// and made one again ten minutes after.
#[test]
fn names_that_grow_are_dealt_out_until_they_cool() {
    let mut policy = Policy::new(PolicyConfig::default());
    let hosts = [HostId::new(0)];
    let mut now = Duration::from_secs(100);
    let mut tick = |parts: &[PartitionLoad], newest: u64| {
        now += TICK;
        let names = (newest * 100..newest * 100 + 100).map(|n| blob(5, &format!("log/{n:09}")));
        let names: Vec<Bytes> = names.map(|key| key.as_bytes().clone()).collect();
        policy.tick(now, &hosts, parts, &mut |_| names.clone())
    };
    let quiet = PartitionLoad { load: Load::default(), ..calm() };
    for _ in 0..16 {
        assert_eq!(tick(std::slice::from_ref(&quiet), 0), []);
    }
    let load = Load { writes: 12_000.0, ..Load::default() };
    let mut parts = vec![PartitionLoad { load, ..calm() }];
    let end = blob(5, "x").rest_of_container().and_then(|rest| rest.high().cloned());
    let mut striped = None;
    for newest in 0..400 {
        let plans = tick(&parts, newest);
        let Some(plan) = plans.first() else { continue };
        let Plan::Stripe(id, range, of) = plan else { panic!("{plan:?}") };
        assert!(striped.replace(newest).is_none(), "once");
        assert_eq!((*id, *of), (calm().id, 5));
        let behind = blob(5, &format!("log/{:09}", newest * 100 + 99));
        assert_eq!(*range, KeyRange::new(behind, end.clone()));
        let stripe = |stripe: Stripe| PartitionLoad {
            id: PartitionId::new(10 + u64::from(stripe.number())),
            range: range.clone(),
            stripe: Some(stripe),
            load: Load { writes: 2_400.0, ..Load::default() },
            ..calm()
        };
        parts = Stripe::all(*of).map(stripe).collect();
    }
    assert!(striped.is_some_and(|tick| tick < 6), "{striped:?}");
    parts.iter_mut().for_each(|part| part.load = Load::default());
    let cold = (0..8 * 1_200).find_map(|n| {
        let plan = tick(&parts, 0).into_iter().next();
        plan.map(|plan| (n, plan))
    });
    let Some((ticks, Plan::Merge(ids))) = cold else { panic!("{cold:?}") };
    assert_eq!(ids, (10..15).map(PartitionId::new).collect::<Vec<_>>());
    assert_eq!(ticks / 8, 600, "seconds");
}

/// The first thing done about writes that begin at once in a partition at rest, of these names in
/// each tick.
fn first_plan(mut names: impl FnMut(u32) -> Vec<RoutingKey>) -> Option<Plan> {
    let mut policy = Policy::new(PolicyConfig::default());
    let hosts = [HostId::new(0)];
    let load = Load { writes: 12_000.0, ..Load::default() };
    let parts = [PartitionLoad { load, ..calm() }];
    let quiet = [PartitionLoad { load: Load::default(), ..calm() }];
    assert_eq!(policy.tick(Duration::ZERO, &hosts, &quiet, &mut |_| Vec::new()), []);
    (0..8).find_map(|n| {
        let mut names: Vec<Bytes> = names(n).iter().map(|key| key.as_bytes().clone()).collect();
        names.sort();
        let now = Duration::from_secs(60) + TICK * n;
        policy.tick(now, &hosts, &parts, &mut |_| names.clone()).into_iter().next()
    })
}

/// Blobs reach the index when their bytes are there: some of them half a second after others with
/// higher names.
#[test]
fn names_that_grow_are_known_though_they_come_out_of_order() {
    let mut late = 0;
    let plan = first_plan(|n| {
        let names = (0..100).map(|one| {
            late = (late * 7 + 3) % 300;
            blob(5, &format!("log/{:09}", 1_000 + n * 100 + one - late))
        });
        names.collect()
    });
    assert!(matches!(plan, Some(Plan::Stripe(..))), "{plan:?}");
}

/// Found by a herd: its first names came in too mixed an order for a look at two ticks, and it was
/// cut between them.
#[test]
fn a_burst_that_may_be_of_growing_names_is_looked_at_once_more() {
    let plan = first_plan(|n| {
        // Half of what comes is as old as the first of all.
        let one = |one: u32| if one.is_multiple_of(2) && n < 3 { one } else { n * 100 + one };
        (0..100).map(|number| blob(5, &format!("log/{:09}", one(number)))).collect()
    });
    assert!(matches!(plan, Some(Plan::Stripe(..))), "{plan:?}");
}

#[test]
fn one_name_from_elsewhere_does_not_hide_that_names_grow() {
    let plan = first_plan(|n| {
        let names = (0..100).map(|one| blob(5, &format!("log/{:09}", n * 100 + one)));
        names.chain((n == 0).then(|| blob(5, "zz"))).collect()
    });
    assert!(matches!(plan, Some(Plan::Stripe(..))), "{plan:?}");
}

#[test]
fn stripes_that_have_grown_large_are_made_one_and_some_of_them_never() {
    let range = blob(5, "a").rest_of_container().unwrap();
    let stripe = |stripe: Stripe| PartitionLoad {
        id: PartitionId::new(u64::from(stripe.number())),
        range: range.clone(),
        stripe: Some(stripe),
        load: Load { writes: 9_000.0, ..Load::default() },
        ..calm()
    };
    let mut parts: Vec<PartitionLoad> = Stripe::all(3).map(stripe).collect();
    let hosts = [HostId::new(0)];
    let samples: Vec<Bytes> =
        (0..100).map(|n| blob(5, &format!("{n:03}")).as_bytes().clone()).collect();
    let mut policy = Policy::new(PolicyConfig::default());
    for n in 0..40 {
        assert_eq!(policy.tick(TICK * n, &hosts, &parts, &mut |_| samples.clone()), []);
    }
    parts[1].rows = 20_000_001;
    let plans = policy.tick(TICK * 41, &hosts, &parts, &mut |_| samples.clone());
    assert_eq!(plans, [Plan::Merge((0..3).map(PartitionId::new).collect())]);
}
