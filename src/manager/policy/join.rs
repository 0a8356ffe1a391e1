//! The neighbours and stripes to merge.

use std::time::Duration;

use crate::index::PartitionLoad;
use crate::index::Plan;
use crate::manager::policy::known::Policy;

/// A partition with less than this share of a hot partition's load is cold. Two of them together
/// are far from hot.
pub(super) const COLD: f64 = 0.125;
/// The share of a hot partition's load that merged partitions may have together.
const COLD_TOGETHER: f64 = 0.25;
/// The share of the size limit that merged partitions may have together.
const SIZE_TOGETHER: f64 = 0.25;
/// The most partitions of one merge.
const WAYS_MAX: usize = 8;

/// The first neighbours, or stripes of a range, that have all been cold for long enough. Stripes
/// are also merged if one is too large; the range is then striped again behind its newest name.
/// Nothing is merged while a partition changes: merges write, and one at a time is enough.
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
        // A stripe may be missing because it is moving between hosts.
        let of = stripes.first().and_then(|load| load.stripe).map(|stripe| stripe.of().into());
        if of != Some(stripes.len()) {
            continue;
        }
        // The last try may have failed because they were too busy.
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
            // A partition between them may be missing, because it is quarantined or moving between
            // hosts.
            if end.replace(load.range.high()).is_some_and(|end| end != Some(load.range.low())) {
                break;
            }
            size += config.size(load);
            weight += config.weight(&load.load);
            let fits = size <= SIZE_TOGETHER && weight < COLD_TOGETHER;
            // All stripes of a range are merged together, or none.
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
