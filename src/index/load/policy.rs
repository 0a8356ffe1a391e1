//! When to change the map: which partition to split where, which to stripe, which to move where,
//! which to merge.
//!
//! 1. `cut.rs`: the keys to split at; `spread.rs`: what to move between hosts; `join.rs`: which
//!    neighbours to merge.
//! 2. Here: what is remembered between ticks, and how much may change in one.
//!
//! What moves is decided by averages (`average.rs`): at steady load nothing does.
//!
//! A split is for load that is there now, a merge for load that has been away for minutes: so a
//! burst that comes back is met by partitions that are still there, and nothing swings.

mod average;
mod cut;
mod join;
mod spread;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::index::load::policy::average::Average;
use crate::index::load::policy::cut::Cut;
use crate::index::load::rates::Load;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;
use crate::types::Stripe;

/// What counts as hot and cold, and how fast to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Requests a second above which a partition is hot. Default 5,000: about a third of what one
    /// commits on one core.
    pub hot_requests: f64,
    /// The share of a processor above which it is hot, however few requests that takes. Default
    /// 0.6.
    pub hot_cpu: f64,
    /// A write that waits so long behind others makes it hot. Default 20 ms.
    pub hot_queue_age: Duration,
    /// Ticks in a row it must be hot. Default 3: a blip is over by then.
    pub hot_ticks: u32,
    /// Rows above which it is split whatever its load. Default 20 million.
    pub rows_max: u64,
    /// Bytes of runs above which it is split whatever its load. Default 8 GiB.
    pub bytes_max: u64,
    /// Partitions of a fleet at most. Default 1,000.
    pub partitions_max: usize,
    /// Splits in one tick at most. Default 2.
    pub splits_per_tick: usize,
    /// Moves in one tick at most. Default 4.
    pub moves_per_tick: usize,
    /// The share of all load that moves in one tick at most, but one partition may whatever its
    /// share. Default 0.05.
    pub churn: f64,
    /// A partition is left alone so long after it was made, and after a split that failed. Default
    /// 1 s.
    pub settle: Duration,
    /// One whose names only grow is cut behind the newest so often, one that is too large is asked
    /// for so often to be split, and neighbours that could not be merged are tried again so long
    /// after. Default 1 minute.
    pub grow: Duration,
    /// A partition that moved stays so long, and stripes that could not be merged are left alone so
    /// long. Default 5 s.
    pub stay: Duration,
    /// Neighbours are merged when together they had less than a quarter of a hot partition's load
    /// in every tick of this time. Default 10 minutes.
    pub cold_for: Duration,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            hot_requests: 5_000.0,
            hot_cpu: 0.6,
            hot_queue_age: Duration::from_millis(20),
            hot_ticks: 3,
            rows_max: 20_000_000,
            bytes_max: 8 << 30,
            partitions_max: 1_000,
            splits_per_tick: 2,
            moves_per_tick: 4,
            churn: 0.05,
            settle: Duration::from_secs(1),
            grow: Duration::from_secs(60),
            stay: Duration::from_secs(5),
            cold_for: Duration::from_secs(600),
        }
    }
}

impl PolicyConfig {
    /// A load by what it is most short of, where 1 is just hot: requests, or processor. It adds up
    /// over the partitions of a host, and moves with them, so that hosts are compared by it.
    /// Waiting does not: it is what too much of either leads to. Log bytes do not: disks are shared
    /// by all hosts.
    #[must_use]
    pub fn weight(&self, load: &Load) -> f64 {
        (load.requests() / self.hot_requests).max(load.cpu / self.hot_cpu)
    }

    fn is_hot(&self, load: &Load) -> bool {
        let weight = self.weight(load);
        weight > 1.0 || (load.queue_age > self.hot_queue_age && weight > WAITING_MIN)
    }

    /// Whether it is hot or may be soon, so that its keys are looked at.
    fn is_warm(&self, load: &Load) -> bool {
        self.weight(load) > WARM || self.is_hot(load)
    }

    /// How many times as large as it should be: above 1 it is split for it.
    fn size(&self, load: &PartitionLoad) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
        let times = |size: u64, max: u64| size as f64 / max.max(1) as f64;
        times(load.rows, self.rows_max).max(times(load.bytes, self.bytes_max))
    }
}

/// How often load is looked at: with [`PolicyConfig::hot_ticks`] and the change itself, half a
/// second for what begins just after a look.
pub const TICK: Duration = Duration::from_millis(125);
/// Growing names are held against the lowest of the highest of so many ticks: half a second.
/// Writers of large blobs reach the index in another order than they began.
const HIGHEST: usize = 4;
/// From this share of a hot partition's load on its keys are looked at, so that they are known once
/// it is hot.
const WARM: f64 = 0.5;
/// With less than this share of a hot partition's load, waiting is no reason for a split: when a
/// whole machine has too much to do writes wait in every partition, and more partitions would not
/// help.
const WAITING_MIN: f64 = 0.1;

/// One partition at one tick.
#[derive(Clone, Debug)]
pub struct PartitionLoad {
    /// The partition.
    pub id: PartitionId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Which stripe of the range, if it is one.
    pub stripe: Option<Stripe>,
    /// Who serves it.
    pub host: HostId,
    /// Since the last tick.
    pub load: Load,
    /// Rows in its runs, about.
    pub rows: u64,
    /// Bytes of those, about.
    pub bytes: u64,
    /// Whether it is under a change of the map now: then nothing is planned for it.
    pub changing: bool,
}

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Cut a partition at these keys, ascending; at least one.
    Split(PartitionId, Vec<RoutingKey>),
    /// Cut a partition into so many with about as many rows, at least two.
    SplitEvenly(PartitionId, usize),
    /// Give a partition to another host.
    Move(PartitionId, HostId),
    /// Deal a part of a partition's range, inside one container, out to so many stripes; what is
    /// below and above stays as it is.
    Stripe(PartitionId, KeyRange, u8),
    /// Make neighbours, in key order, or all stripes of a range one.
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
    /// What hosts are compared by: a tick alone shows mostly chance when requests are few.
    average: Average,
    /// Since when it has been so cold that it may be merged.
    cold: Option<Duration>,
    /// When it was last told to move, and where to.
    moved: Option<(Duration, HostId)>,
    /// When it was last asked to be split for its size.
    large: Option<Duration>,
    /// When it was last planned to be replaced by others; it is still there if that failed.
    tried: Option<Duration>,
    /// The highest samples of the last ticks in which there were enough to tell, the oldest first.
    highest: VecDeque<Bytes>,
}

impl Known {
    const fn new(now: Duration) -> Self {
        Self {
            since: now,
            hot: 0,
            average: Average::NONE,
            cold: None,
            moved: None,
            large: None,
            tried: None,
            highest: VecDeque::new(),
        }
    }

    /// Whether that was less than `pause` ago: what fails again and again must not keep others
    /// waiting.
    fn was_tried(&self, now: Duration, pause: Duration) -> bool {
        self.tried.is_some_and(|at| now.saturating_sub(at) < pause)
    }
}

impl Policy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self { config, known: BTreeMap::new() }
    }

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
