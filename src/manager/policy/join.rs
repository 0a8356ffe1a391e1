//! Which neighbours to merge.

use std::time::Duration;

use crate::index::PartitionLoad;
use crate::index::Plan;
use crate::manager::policy::known::Policy;

/// The share of a hot partition's load below which a partition is cold: two of them are far from
/// hot together.
pub(super) const COLD: f64 = 0.125;
/// The share of a hot partition's load that merged ones may have together.
const COLD_TOGETHER: f64 = 0.25;
/// The share of the size at which a partition is split that merged ones may have together.
const SIZE_TOGETHER: f64 = 0.25;
/// Partitions merged in one step at most.
const WAYS_MAX: usize = 8;

/// The first neighbours, or stripes of a range, that have all been cold long enough; or stripes
/// that have grown large: the range is cut behind its newest name then. Only if the map is at rest:
/// merges write, and one at a time is enough.
pub(super) fn merge(policy: &Policy, now: Duration, loads: &[PartitionLoad]) -> Option<Plan> {
    if loads.iter().any(|load| load.changing) {
        return None;
    }
    let config = policy.config;
    let tried = |load: &PartitionLoad, pause: Duration| {
        policy.known.get(&load.id).is_some_and(|known| known.was_tried(now, pause))
    };
    let cold = |load: &PartitionLoad| {
        let since = policy.known.get(&load.id).and_then(|known| known.cold);
        since.is_some_and(|since| now.saturating_sub(since) >= config.cold_for)
    };
    for stripes in loads.chunk_by(|a, b| a.stripe.is_some() && a.range == b.range) {
        // One may be between two hosts just now.
        let of = stripes.first().and_then(|load| load.stripe).map(|stripe| stripe.of().into());
        if of != Some(stripes.len()) {
            continue;
        }
        // They may be too busy: the next moment is another.
        if stripes.iter().any(|load| tried(load, config.stay)) {
            continue;
        }
        let weight: f64 = stripes.iter().map(|load| config.weight(&load.load)).sum();
        let too_large = stripes.iter().any(|load| config.size(load) > 1.0);
        let over = stripes.iter().all(cold) && weight < COLD_TOGETHER;
        if over || too_large {
            return Some(Plan::Merge(stripes.iter().map(|load| load.id).collect()));
        }
    }
    for place in 0..loads.len() {
        let (mut ids, mut size, mut weight) = (Vec::new(), 0.0, 0.0);
        let mut end = None;
        for load in loads.iter().skip(place).take(WAYS_MAX) {
            // Between two of them one may be missing: it is quarantined, or between two hosts.
            if end.replace(load.range.high()).is_some_and(|end| end != Some(load.range.low())) {
                break;
            }
            size += config.size(load);
            weight += config.weight(&load.load);
            let fits = size <= SIZE_TOGETHER && weight < COLD_TOGETHER;
            // Stripes are merged all together or not at all.
            if !(cold(load) && fits && load.stripe.is_none()) || tried(load, config.grow) {
                break;
            }
            ids.push(load.id);
        }
        if ids.len() > 1 {
            return Some(Plan::Merge(ids));
        }
    }
    None
}
