//! When to change the map: which partition to split where, which to move where, which to merge.
//!
//! 1. `cut.rs`: the keys to split at; `spread.rs`: what to move between hosts; `join.rs`: which neighbours to merge.
//! 2. Here: what is remembered between ticks, and how much may change in one.
//!
//! A split is for load that is there now, a merge for load that has been away for minutes: so a burst that comes back is met
//! by partitions that are still there, and nothing swings.

mod cut;
mod join;
mod spread;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::index::load::policy::cut::Cut;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// What counts as hot and cold, and how fast to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Requests a second above which a partition is hot. Default 5,000: about a third of what one commits on one core.
    pub hot_requests: f64,
    /// Ticks in a row it must be hot. Default 2.
    pub hot_ticks: u32,
    /// Rows above which it is split whatever its load. Default 20 million.
    pub rows_max: u64,
    /// Partitions of a fleet at most. Default 1,000.
    pub partitions_max: usize,
    /// Splits in one tick at most. Default 2.
    pub splits_per_tick: usize,
    /// Moves in one tick at most. Default 2.
    pub moves_per_tick: usize,
    /// A partition is left alone so long after it was made. Default 1 s.
    pub settle: Duration,
    /// One whose names only grow is cut behind the newest so often. Default 1 minute.
    pub grow: Duration,
    /// A partition that moved stays so long. Default 5 s.
    pub stay: Duration,
    /// Neighbours are merged when together they had less than a quarter of a hot partition's load in every tick of this
    /// time. Default 10 minutes.
    pub cold_for: Duration,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            hot_requests: 5_000.0,
            hot_ticks: 2,
            rows_max: 20_000_000,
            partitions_max: 1_000,
            splits_per_tick: 2,
            moves_per_tick: 2,
            settle: Duration::from_secs(1),
            grow: Duration::from_secs(60),
            stay: Duration::from_secs(5),
            cold_for: Duration::from_secs(600),
        }
    }
}

/// From this share of a hot partition's load on its keys are looked at, so that they are known once it is hot.
const WARM: f64 = 0.5;

/// One partition at one tick.
#[derive(Clone, Debug)]
pub struct PartitionLoad {
    /// The partition.
    pub id: PartitionId,
    /// Its keys.
    pub range: KeyRange,
    /// Who serves it.
    pub host: HostId,
    /// Requests a second since the last tick.
    pub requests: f64,
    /// Rows in its runs.
    pub rows: u64,
}

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Cut a partition at these keys, ascending; at least one.
    Split(PartitionId, Vec<RoutingKey>),
    /// Give a partition to another host.
    Move(PartitionId, HostId),
    /// Make neighbours one, in key order.
    Merge(Vec<PartitionId>),
}

/// Remembers of each partition what one tick does not show.
#[derive(Debug, Default)]
pub struct Policy {
    config: PolicyConfig,
    known: BTreeMap<PartitionId, Known>,
}

#[derive(Debug)]
struct Known {
    since: Duration,
    hot: u32,
    /// Since when it has been so cold that it may be merged.
    cold: Option<Duration>,
    moved: Option<Duration>,
    /// The highest sample of the tick before.
    highest: Option<Bytes>,
}

impl Known {
    const fn new(now: Duration) -> Self {
        Self { since: now, hot: 0, cold: None, moved: None, highest: None }
    }
}

impl Policy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self { config, known: BTreeMap::new() }
    }

    /// What to change now. `now` is monotonic; the loads are of all partitions, in key order, a quarter of a second after
    /// the last; `hosts` take partitions. `samples` gives the routing keys of a partition's recent requests in order, with
    /// repeats; it is asked about warm partitions only.
    pub fn tick(
        &mut self,
        now: Duration,
        hosts: &[HostId],
        loads: &[PartitionLoad],
        samples: &mut dyn FnMut(PartitionId) -> Vec<Bytes>,
    ) -> Vec<Plan> {
        for load in loads {
            self.look(now, load);
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
        plans
    }

    /// Notes what one tick adds to what is known.
    fn look(&mut self, now: Duration, load: &PartitionLoad) {
        let config = self.config;
        let known = self.known.entry(load.id).or_insert(Known::new(now));
        let hot = load.requests > config.hot_requests;
        known.hot = if hot { known.hot.saturating_add(1) } else { 0 };
        let cold = load.requests < config.hot_requests * join::COLD;
        known.cold = if cold { known.cold.or(Some(now)) } else { None };
    }

    fn splits(
        &mut self,
        now: Duration,
        loads: &[PartitionLoad],
        samples: &mut dyn FnMut(PartitionId) -> Vec<Bytes>,
    ) -> Vec<Plan> {
        let config = self.config;
        let mut found: Vec<(f64, Plan, usize)> = Vec::new();
        for load in loads {
            let Some(known) = self.known.get_mut(&load.id) else { continue };
            let large = load.rows > config.rows_max;
            if load.requests <= config.hot_requests * WARM && !large {
                known.highest = None;
                continue;
            }
            let samples = samples(load.id);
            let before = std::mem::replace(&mut known.highest, samples.last().cloned());
            let settled = now.saturating_sub(known.since) >= config.settle;
            let hot = known.hot >= config.hot_ticks && before.is_some();
            if !(settled && (hot || large)) {
                continue;
            }
            let ways = cut::ways(load.requests / config.hot_requests);
            let keys = match cut::cut(load, &samples, before.as_ref(), ways) {
                Cut::Between(keys) => keys,
                // What comes after the cut is as hot as before: once in a while is enough for the rows to be left behind.
                Cut::Behind(_) if now.saturating_sub(known.since) < config.grow => continue,
                Cut::Behind(key) => vec![key],
                Cut::Nowhere => continue,
            };
            let count = keys.len();
            found.push((load.requests, Plan::Split(load.id, keys), count));
        }
        // The hottest first.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(config.splits_per_tick);
        let mut room = config.partitions_max.saturating_sub(loads.len());
        found.retain(|(_, _, count)| {
            let fits = *count <= room;
            room -= if fits { *count } else { 0 };
            fits
        });
        found.into_iter().map(|(_, plan, _)| plan).collect()
    }
}

#[cfg(test)]
mod tests;
