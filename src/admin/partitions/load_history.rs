//! The load of the last ten minutes. It is sampled from the start of the server on, and kept in
//! memory only.
//!
//! A *sample* has the rate of each partition that had requests since the previous sample. A *stay*
//! is the time for which a partition is on one host. Samples refer to stays, so the keys of ten
//! thousand partitions are kept once, not once for each sample.
//!
//! Bounds:
//! - Ten minutes. Older samples are dropped.
//! - 1,048,576 rates, 8 MiB. The interval grows with the number of partitions that have requests:
//!   two seconds with up to 3,495 of them, six with 10,000. If that does not suffice, the oldest
//!   samples are dropped.
//! - 10,000 stays that have ended. Then the oldest samples are dropped.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::index::PartitionCounts;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Stripe;
use crate::types::Timestamp;

/// The time that the history covers.
pub(super) const WINDOW: Duration = Duration::from_secs(600);
/// The least time between two samples.
pub(super) const TICK: Duration = Duration::from_secs(2);
/// Rates of all samples together.
const RATES_MAX: u32 = 1 << 20;
/// Stays that have ended.
const ENDED_MAX: usize = 10_000;

/// The load of the last ten minutes.
#[derive(Debug, Default)]
pub(super) struct LoadHistory(Mutex<Kept>);

/// The time for which a partition was on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) number: u32,
    pub(super) id: PartitionId,
    pub(super) host: HostId,
    pub(super) range: KeyRange,
    pub(super) stripe: Option<Stripe>,
    /// The first sample that found it.
    pub(super) since: u64,
    /// The first sample that did not find it any more.
    pub(super) until: Option<u64>,
}

/// The rates between two samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadSample {
    /// Numbers grow, also across restarts, and are below 2^53.
    pub(super) number: u64,
    pub(super) at: Timestamp,
    /// The same by the monotonic clock.
    taken: Duration,
    /// Requests a second of the stays that had any, to two digits.
    pub(super) rates: Vec<(u32, f32)>,
}

/// The samples after an earlier one, or all.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LoadPart {
    /// When the first sample of this process was taken; `None` before it.
    pub(super) began: Option<Timestamp>,
    /// The earlier sample; `None` when these are all.
    pub(super) after: Option<u64>,
    /// The time between samples now.
    pub(super) every: Duration,
    /// Stays that the earlier sample did not have.
    pub(super) stays: Vec<Stay>,
    /// Other stays that have ended since then, and the first sample without them.
    pub(super) ended: Vec<(u32, u64)>,
    /// Oldest first.
    pub(super) samples: Vec<Arc<LoadSample>>,
}

#[derive(Debug, Default)]
struct Kept {
    began: Option<Timestamp>,
    samples: VecDeque<Arc<LoadSample>>,
    /// The rates of these samples.
    rates: usize,
    stays: BTreeMap<u32, Stay>,
    /// How many of them have ended.
    ended: usize,
    /// The partitions of the last sample.
    found: HashMap<PartitionId, Found>,
    next_stay: u32,
}

/// A partition of the last sample.
#[derive(Clone, Copy, Debug)]
struct Found {
    stay: u32,
    host: HostId,
    requests: u64,
    sample: u64,
}

impl LoadHistory {
    /// Whether the next sample is due.
    pub(super) fn is_due(&self, taken: Duration) -> bool {
        let kept = self.kept();
        // The clock may wake a moment early.
        let slack = TICK / 4;
        kept.samples.back().is_none_or(|last| taken + slack >= last.taken + kept.every())
    }

    /// Adds a sample. `taken` is `now` by the monotonic clock. Requests between the last sample
    /// and the split, merge or move of their partition are in no rate.
    pub(super) fn note(&self, now: Timestamp, taken: Duration, partitions: Vec<PartitionCounts>) {
        self.kept().note(now, taken, partitions);
    }

    /// The samples after number `after`, or all if that one is not kept.
    pub(super) fn after(&self, after: Option<u64>) -> LoadPart {
        let kept = self.kept();
        let place = after.and_then(|after| {
            kept.samples.binary_search_by_key(&after, |sample| sample.number).ok().zip(Some(after))
        });
        let (first, after) = place.map_or((0, None), |(place, after)| (place + 1, Some(after)));
        let is_new = |stay: &&Stay| after.is_none_or(|after| stay.since > after);
        let ended = |stay: &Stay| {
            let until = stay.until.filter(|until| after.is_some_and(|after| *until > after))?;
            after.filter(|after| stay.since <= *after).map(|_| (stay.number, until))
        };
        LoadPart {
            began: kept.began,
            after,
            every: kept.every(),
            stays: kept.stays.values().filter(is_new).cloned().collect(),
            ended: kept.stays.values().filter_map(ended).collect(),
            samples: kept.samples.range(first..).cloned().collect(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The time between samples, such that all samples of the window have room.
    fn every(&self) -> Duration {
        let last = self.samples.back().map_or(0, |last| last.rates.len());
        let busy = u32::try_from(last).unwrap_or(u32::MAX);
        TICK.max(WINDOW.saturating_mul(busy) / RATES_MAX)
    }

    fn note(&mut self, now: Timestamp, taken: Duration, partitions: Vec<PartitionCounts>) {
        let micros = u64::try_from(now.since_unix().as_micros()).unwrap_or(u64::MAX);
        let number = self.samples.back().map_or(micros, |last| micros.max(last.number + 1));
        let elapsed =
            self.samples.back().map(|last| taken.saturating_sub(last.taken).as_secs_f64());
        self.began.get_or_insert(now);
        let mut rates = Vec::new();
        for partition in partitions {
            let requests = partition.requests;
            let (stay, before) = self.stay(partition, number);
            let count = elapsed.map_or(0.0, |elapsed| per_second(requests - before, elapsed));
            if count > 0.0 {
                rates.push((stay, count));
            }
        }
        let gone = |found: &Found| found.sample != number;
        let ended: Vec<u32> = self.found.values().filter(|f| gone(f)).map(|f| f.stay).collect();
        self.found.retain(|_, found| !gone(found));
        ended.into_iter().for_each(|stay| self.end(stay, number));
        self.rates += rates.len();
        self.samples.push_back(Arc::new(LoadSample { number, at: now, taken, rates }));
        self.trim(taken);
    }

    /// The stay of a partition that sample `number` finds, and the requests that the previous
    /// sample had counted.
    fn stay(&mut self, partition: PartitionCounts, number: u64) -> (u32, u64) {
        let PartitionCounts { id, host, range, stripe, requests, .. } = partition;
        if let Some(found) = self.found.get_mut(&id) {
            if found.host == host {
                // A partition that was closed and opened again counts from zero.
                let before = found.requests.min(requests);
                (found.requests, found.sample) = (requests, number);
                return (found.stay, before);
            }
            let moved = found.stay;
            self.end(moved, number);
        }
        let stay = self.next_stay;
        self.next_stay += 1;
        self.found.insert(id, Found { stay, host, requests, sample: number });
        let new = Stay { number: stay, id, host, range, stripe, since: number, until: None };
        self.stays.insert(stay, new);
        (stay, 0)
    }

    fn end(&mut self, stay: u32, number: u64) {
        if let Some(stay) = self.stays.get_mut(&stay) {
            stay.until = Some(number);
            self.ended += 1;
        }
    }

    /// Drops samples beyond the bounds, but never the last one.
    fn trim(&mut self, taken: Duration) {
        let rates_max = usize::try_from(RATES_MAX).unwrap_or(usize::MAX);
        while let Some(first) = self.samples.front() {
            let old = taken.saturating_sub(first.taken) > WINDOW;
            let full = self.rates > rates_max || self.ended > ENDED_MAX;
            if self.samples.len() == 1 || !(old || full) {
                break;
            }
            self.rates -= first.rates.len();
            self.samples.pop_front();
            self.forget();
        }
    }

    /// Removes stays that are in no sample any more.
    fn forget(&mut self) {
        if self.ended == 0 {
            return;
        }
        let first = self.samples.front().map_or(0, |first| first.number);
        self.stays.retain(|_, stay| stay.until.is_none_or(|until| until > first));
        self.ended = self.stays.values().filter(|stay| stay.until.is_some()).count();
    }
}

/// Requests a second to two digits.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "two digits")]
fn per_second(requests: u64, elapsed: f64) -> f32 {
    if requests == 0 || elapsed <= 0.0 {
        return 0.0;
    }
    let rate = requests as f64 / elapsed;
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    ((rate / unit).round() * unit) as f32
}

#[cfg(test)]
mod tests;
