//! When to split which partition where.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// What counts as hot, and how fast to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Requests a second above which a partition is hot. Default 5,000: about a third of what one commits on one core.
    pub hot_requests: f64,
    /// Ticks in a row it must be hot. Default 2.
    pub hot_ticks: u32,
    /// Rows above which it is split whatever its load. Default 20 million.
    pub rows_max: u64,
    /// Partitions of a host at most. Default 1,000.
    pub partitions_max: usize,
    /// Splits in one tick at most. Default 2.
    pub splits_per_tick: usize,
    /// A partition is left alone so long after it was made. Default 1 s.
    pub settle: Duration,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            hot_requests: 5_000.0,
            hot_ticks: 2,
            rows_max: 20_000_000,
            partitions_max: 1_000,
            splits_per_tick: 2,
            settle: Duration::from_secs(1),
        }
    }
}

/// Children of one split for load: more adds less than it costs.
const WAYS_MAX: usize = 8;
/// Fewer samples do not tell where to cut.
const SAMPLES_MIN: usize = 32;
/// From this share of samples on, one key is the load: no split helps it.
const ONE_KEY_PERCENT: usize = 25;
/// From this share of samples above all earlier ones on, names grow: cut behind them.
const GROWING_PERCENT: usize = 80;

/// One partition at one tick.
#[derive(Clone, Debug)]
pub struct PartitionLoad {
    /// The partition.
    pub id: PartitionId,
    /// Its keys.
    pub range: KeyRange,
    /// Requests a second since the last tick.
    pub requests: f64,
    /// Rows in its runs.
    pub rows: u64,
    /// Routing keys of recent requests, in order, with repeats.
    pub samples: Vec<Bytes>,
}

/// A split to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    /// The partition.
    pub partition: PartitionId,
    /// Where, ascending; at least one.
    pub keys: Vec<RoutingKey>,
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
    /// The highest sample of the tick before.
    highest: Option<Bytes>,
}

impl Policy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self { config, known: BTreeMap::new() }
    }

    /// What to split now. `now` is monotonic; the loads are of all partitions, a quarter of a second after the last.
    pub fn tick(&mut self, now: Duration, loads: &[PartitionLoad]) -> Vec<SplitPlan> {
        self.known.retain(|id, _| loads.iter().any(|load| load.id == *id));
        let mut room = self.config.partitions_max.saturating_sub(loads.len());
        let mut plans: Vec<(f64, SplitPlan)> = Vec::new();
        for load in loads {
            if let Some(keys) = self.judge(now, load) {
                plans.push((load.requests, SplitPlan { partition: load.id, keys }));
            }
        }
        // The hottest first.
        plans.sort_by(|a, b| b.0.total_cmp(&a.0));
        plans.truncate(self.config.splits_per_tick);
        plans.retain(|(_, plan)| {
            let fits = plan.keys.len() <= room;
            room -= if fits { plan.keys.len() } else { 0 };
            fits
        });
        plans.into_iter().map(|(_, plan)| plan).collect()
    }

    fn judge(&mut self, now: Duration, load: &PartitionLoad) -> Option<Vec<RoutingKey>> {
        let config = self.config;
        let known =
            self.known.entry(load.id).or_insert(Known { since: now, hot: 0, highest: None });
        let before = std::mem::replace(&mut known.highest, load.samples.last().cloned());
        let hot = load.requests > config.hot_requests;
        known.hot = if hot { known.hot.saturating_add(1) } else { 0 };
        let settled = now.saturating_sub(known.since) >= config.settle;
        let due = known.hot >= config.hot_ticks || load.rows > config.rows_max;
        if !(due && settled) || load.samples.len() < SAMPLES_MIN {
            return None;
        }
        let keys = keys(load, before.as_ref(), ways(load.requests / config.hot_requests));
        (!keys.is_empty()).then_some(keys)
    }
}

/// So many that each child is well below hot.
fn ways(times: f64) -> usize {
    let half =
        (2..WAYS_MAX).find(|ways| times * 2.0 <= f64::from(u32::try_from(*ways).unwrap_or(8)));
    half.unwrap_or(WAYS_MAX)
}

/// The keys to cut at: quantiles of the samples; behind them all when they only grow; none when one key is the load.
fn keys(load: &PartitionLoad, before: Option<&Bytes>, ways: usize) -> Vec<RoutingKey> {
    let samples = &load.samples;
    let is_share = |count: usize, percent: usize| count * 100 >= samples.len() * percent;
    let longest = samples.chunk_by(|a, b| a == b).map(<[Bytes]>::len).max().unwrap_or(0);
    if is_share(longest, ONE_KEY_PERCENT) {
        return Vec::new();
    }
    let above = before.map_or(0, |before| samples.iter().filter(|key| *key > before).count());
    let picked: Vec<&Bytes> = if is_share(above, GROWING_PERCENT) {
        samples.last().into_iter().collect()
    } else {
        (1..ways).filter_map(|n| samples.get(n * samples.len() / ways)).collect()
    };
    let mut keys: Vec<RoutingKey> = picked
        .into_iter()
        .filter(|key| load.range.contains(key) && *key != load.range.low().as_bytes())
        .map(|key| RoutingKey::from_bytes(key.clone()))
        .collect();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests;
