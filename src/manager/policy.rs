//! When to change the map: which partition to split where, which to stripe, which to move where,
//! which to merge.
//!
//! 1. `cut.rs`: the keys to split at; `spread.rs`: what to move between hosts; `join.rs`: which
//!    neighbours to merge.
//! 2. `config.rs`: what is hot, cold and large; `known.rs`: what is remembered between ticks.
//! 3. Here: how much may change in a tick.
//!
//! What moves is decided by averages (`average.rs`): at steady load nothing does.
//!
//! A split is for load that is there now, a merge for load that has been away for minutes: so a
//! burst that comes back is met by partitions that are still there, and nothing swings.

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

/// Growing names are held against the lowest of the highest of so many ticks: half a second.
/// Writers of large blobs reach the index in another order than they began.
const HIGHEST: usize = 4;

impl Policy {
    /// What to change now. `now` is monotonic; the loads are of all partitions, in key order,
    /// [`TICK`] after the last; `hosts` take partitions. `samples` gives the routing keys of a
    /// partition's recent requests in order, with repeats; it is asked about warm partitions only.
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
            // The same partition afterwards; `stay` keeps it from moving all the time.
            Plan::Move(..) => &[],
        };
        for id in ids {
            if let Some(known) = self.known.get_mut(id) {
                known.tried = Some(now);
            }
        }
    }

    /// Notes what one tick adds to what is known.
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
            // Most of thousands are at rest.
            let may_be = config.is_warm(&load.load) || config.size(load) > 1.0;
            // More stripes, or other ranges, come after they are one again.
            if !may_be || load.changing || load.stripe.is_some() {
                continue;
            }
            if let Some((plan, more)) = self.split(now, load, samples) {
                found.push((config.weight(&load.load), plan, more));
            }
        }
        // The hottest first.
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

    /// How to split a partition, if it should be, and how many more there are then.
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
            // Not the oldest: one look may have met a name from elsewhere.
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
                        // Older names stay in one partition, which LIST asks alone.
                        Some(rest) => {
                            let stripes = cut::stripes(ways);
                            let plan = Plan::Stripe(load.id, rest, stripes);
                            return Some((plan, usize::from(stripes) + 1));
                        }
                        // What comes after the cut is as hot as before: once in a while is enough
                        // for the rows to be left behind.
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
        // It may have no place to be cut at.
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
