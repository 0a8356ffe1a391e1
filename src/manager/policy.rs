//! The policy: which partition to split, stripe, move or merge, and when.
//!
//! 1. `cut.rs`: the keys to split at. `spread.rs`: the moves between hosts. `join.rs`: the
//!    neighbours to merge.
//! 2. `config.rs`: the limits for hot, cold and large. `known.rs`: the state that the policy keeps
//!    between ticks.
//! 3. This file: the splits, and the limits of changes in a tick.
//!
//! Moves follow averages (`average.rs`), so that steady load causes none.
//!
//! A split follows the load of the last ticks, a merge follows minutes without load. So the
//! partitions of a burst still exist when the burst comes back, and the map does not oscillate.

mod average;
mod config;
mod cut;
mod join;
mod known;
mod spread;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::index::PartitionLoad;
use crate::index::Plan;
use crate::manager::policy::cut::Cut;
use crate::manager::policy::known::Known;
use crate::types::HostId;
use crate::types::PartitionId;

pub use config::{PolicyConfig, TICK};
pub use known::Policy;

/// The number of ticks, half a second, whose highest names are remembered. Names grow if most names
/// of a tick are above the lowest of these. It is the lowest, because writers of large blobs reach
/// the index in another order than they began.
const HIGHEST: usize = 4;

impl Policy {
    /// The changes to make now. `now` is monotonic. `loads` has all partitions in key order,
    /// [`TICK`] after the last call. `hosts` take partitions. `samples` returns the routing keys of
    /// a partition's recent requests, in order, with repeats. It is called only for warm
    /// partitions.
    pub fn tick(
        &mut self,
        now: Duration,
        hosts: &[HostId],
        loads: &[PartitionLoad],
        samples: &mut dyn FnMut(PartitionId) -> Vec<Bytes>,
    ) -> Vec<Plan> {
        for load in loads {
            self.follow(now, load);
        }
        if self.known.len() > loads.len() {
            let there: BTreeSet<PartitionId> = loads.iter().map(|load| load.id).collect();
            self.known.retain(|id, _| there.contains(id));
        }
        let mut plans = self.splits(now, loads, samples);
        if plans.is_empty() {
            plans = spread::moves(self, now, hosts, loads);
        }
        if plans.is_empty() {
            plans.extend(join::merge(self, now, loads));
        }
        for plan in &plans {
            self.note_tried(now, plan);
        }
        plans
    }

    fn note_tried(&mut self, now: Duration, plan: &Plan) {
        let ids = match plan {
            Plan::Split(id, _) | Plan::SplitEvenly(id, _) | Plan::Stripe(id, ..) => {
                std::slice::from_ref(id)
            }
            Plan::Merge(ids) => ids,
            // A moved partition keeps its id. `PolicyConfig::stay` limits how often it moves.
            Plan::Move(..) => &[],
        };
        for id in ids {
            if let Some(known) = self.known.get_mut(id) {
                known.tried = Some(now);
            }
        }
    }

    /// Adds the load of one tick to the remembered state.
    fn follow(&mut self, now: Duration, load: &PartitionLoad) {
        let config = self.config;
        let known = self.known.entry(load.id).or_insert(Known::new(now));
        let hot = config.is_hot(&load.load);
        known.hot = if hot { known.hot.saturating_add(1) } else { 0 };
        let weight = config.weight(&load.load);
        known.average.add(now, weight, load.load.requests());
        let cold = weight < join::COLD;
        known.cold = if cold { known.cold.or(Some(now)) } else { None };
        if !config.is_warm(&load.load) {
            known.highest.clear();
        }
    }

    fn splits(
        &mut self,
        now: Duration,
        loads: &[PartitionLoad],
        samples: &mut dyn FnMut(PartitionId) -> Vec<Bytes>,
    ) -> Vec<Plan> {
        let config = self.config;
        let mut found = Vec::new();
        for load in loads {
            // Most of thousands of partitions have little load.
            let may_be = config.is_warm(&load.load) || config.size(load) > 1.0;
            // A stripe is not split. Its range is divided again after all its stripes were merged.
            if !may_be || load.changing || load.stripe.is_some() {
                continue;
            }
            if let Some((plan, more)) = self.split(now, load, samples) {
                found.push((config.weight(&load.load), plan, more));
            }
        }
        // The hottest partitions first.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(config.splits_per_tick);
        let mut room = config.partitions_max.saturating_sub(loads.len());
        found.retain(|(_, _, more)| {
            let fits = *more <= room;
            room -= if fits { *more } else { 0 };
            fits
        });
        found.into_iter().map(|(_, plan, _)| plan).collect()
    }

    /// The split of a partition, if it should be split, and the number of partitions that it adds.
    fn split(
        &mut self,
        now: Duration,
        load: &PartitionLoad,
        samples: &mut dyn FnMut(PartitionId) -> Vec<Bytes>,
    ) -> Option<(Plan, usize)> {
        let config = self.config;
        let known = self.known.get_mut(&load.id)?;
        let age = now.saturating_sub(known.since);
        let weight = config.weight(&load.load);
        if config.is_warm(&load.load) {
            let samples = samples(load.id);
            let is_old = known.highest.len() == HIGHEST;
            // The lowest and not the oldest: one tick may have sampled an unrelated name.
            let before = known.highest.iter().min().cloned();
            known.highest.extend(cut::highest(&samples));
            if known.highest.len() > HIGHEST {
                known.highest.pop_front();
            }
            let may_be = age >= config.settle && !known.was_tried(now, config.settle);
            if may_be && known.hot >= config.hot_ticks && before.is_some() {
                let ways = cut::ways(weight);
                let keys = match cut::cut(load, &samples, (before.as_ref(), is_old), ways) {
                    Cut::Between(keys) => keys,
                    Cut::Behind(key) => match cut::rest(load, &key) {
                        // Older names stay in one partition, so that LIST asks only one.
                        Some(rest) => {
                            let stripes = cut::stripes(ways);
                            let plan = Plan::Stripe(load.id, rest, stripes);
                            return Some((plan, usize::from(stripes) + 1));
                        }
                        // The range after the cut is as hot as before. The cut only leaves older
                        // rows behind, for which one in `grow` is enough.
                        None if age >= config.grow => vec![key],
                        None => Vec::new(),
                    },
                    Cut::Nowhere => Vec::new(),
                };
                if !keys.is_empty() {
                    let more = keys.len();
                    return Some((Plan::Split(load.id, keys), more));
                }
            }
        }
        let size = config.size(load);
        // It may have no key at which it can be cut.
        let asked = known.large.is_some_and(|at| now.saturating_sub(at) < config.grow);
        if size <= 1.0 || asked || age < config.settle {
            return None;
        }
        known.large = Some(now);
        let ways = cut::ways(size);
        Some((Plan::SplitEvenly(load.id, ways), ways - 1))
    }
}

#[cfg(test)]
mod tests;
