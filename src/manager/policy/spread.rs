//! What to move so that no host has much more load than others.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::PartitionLoad;
use crate::index::Plan;
use crate::manager::policy::average::Average;
use crate::manager::policy::known::Policy;
use crate::types::HostId;
use crate::types::PartitionId;

/// A host with more than so many times the mean load gives some away.
const UNEVEN: f64 = 1.2;
/// A move must leave its host with so much more than the other had, as a share of their difference:
/// with less it may as well go back the next time.
const MARGIN: f64 = 0.1;
/// And with so many times what the difference may be off by chance. Looked at eight times a second,
/// less would come up.
const SURE: f64 = 4.0;
/// With less load than this share of a hot partition's a host is left alone, however uneven it is.
const BUSY: f64 = 0.5;

/// Moves from the busiest hosts to the least busy, each such that the difference shrinks.
pub(super) fn moves(
    policy: &mut Policy,
    now: Duration,
    hosts: &[HostId],
    loads: &[PartitionLoad],
) -> Vec<Plan> {
    let config = policy.config;
    let averages: BTreeMap<PartitionId, Average> =
        policy.known.iter().map(|(id, known)| (*id, known.average)).collect();
    let average = |load: &PartitionLoad| averages.get(&load.id).copied().unwrap_or(Average::NONE);
    let weight = |load: &PartitionLoad| average(load).weight();
    let mut plans = Vec::new();
    let mut of_host: BTreeMap<HostId, f64> = hosts.iter().map(|host| (*host, 0.0)).collect();
    let mut chance: BTreeMap<HostId, f64> = BTreeMap::new();
    for load in loads {
        // What is on its way counts where it goes to.
        let known = policy.known.get(&load.id).filter(|_| load.changing);
        let to = known.and_then(|known| known.moved).map_or(load.host, |(_, to)| to);
        *of_host.entry(to).or_default() += weight(load);
        *chance.entry(to).or_default() += average(load).variance();
    }
    let all: f64 = of_host.values().sum();
    let (mut moved, mut moving) = (Vec::new(), 0.0);
    while plans.len() < config.moves_per_tick {
        let by_load = |a: &(&HostId, &f64), b: &(&HostId, &f64)| a.1.total_cmp(b.1);
        let Some((from, most)) = of_host.iter().max_by(by_load).map(|(h, l)| (*h, *l)) else {
            break;
        };
        let Some((to, least)) = of_host.iter().min_by(by_load).map(|(h, l)| (*h, *l)) else {
            break;
        };
        let count = f64::from(u32::try_from(of_host.len()).unwrap_or(u32::MAX));
        if most <= all / count * UNEVEN || most <= BUSY {
            break;
        }
        let may_move = |load: &&PartitionLoad| {
            let known = policy.known.get(&load.id);
            let rests = known.is_some_and(|known| {
                known.moved.is_some_and(|(at, _)| now.saturating_sub(at) < config.stay)
            });
            load.host == from
                && !load.changing
                && !rests
                && !moved.iter().any(|(id, _)| *id == load.id)
        };
        // What comes nearest to half of the difference evens the two out best; more than all of it
        // only turns them round.
        let gap = most - least;
        let off = |load: &PartitionLoad| (weight(load) - gap / 2.0).abs();
        let variance = |host: &HostId| chance.get(host).copied().unwrap_or_default();
        let margin = (SURE * (variance(&from) + variance(&to)).max(0.0).sqrt()).max(gap * MARGIN);
        let useful = |load: &&PartitionLoad| weight(load) > 0.0 && weight(load) < gap - margin;
        let best = loads.iter().filter(may_move).filter(useful);
        let Some(best) = best.min_by(|a, b| off(a).total_cmp(&off(b))) else { break };
        moving += weight(best);
        if !plans.is_empty() && moving > all * config.churn {
            break;
        }
        *of_host.entry(from).or_default() -= weight(best);
        *of_host.entry(to).or_default() += weight(best);
        *chance.entry(from).or_default() -= average(best).variance();
        *chance.entry(to).or_default() += average(best).variance();
        moved.push((best.id, to));
        plans.push(Plan::Move(best.id, to));
    }
    for (id, to) in moved {
        if let Some(known) = policy.known.get_mut(&id) {
            known.moved = Some((now, to));
        }
    }
    plans
}
