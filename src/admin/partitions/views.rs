//! The answers of the paths of partitions. `api-spec/admin.yaml` describes them.

use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::index::ChangeEvent;
use crate::index::Changed;
use crate::index::PartitionStatus;
use crate::types::PartitionId;
use crate::types::Stripe;

use super::names;
use super::names::Known;

/// All partitions at an instant, or those that changed since an earlier answer, and the requested
/// changes of the map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapView {
    /// The instant, ISO 8601.
    pub now: String,
    /// The number of this answer. A later request can ask for what has changed since.
    #[serde(default)]
    pub number: u64,
    /// The number of the answer since which `partitions` have changed; none when these are all.
    #[serde(default)]
    pub since: Option<u64>,
    /// Partitions that existed then and do not exist any more.
    #[serde(default)]
    pub gone: Vec<u64>,
    /// The number of hosts. Those of a node are numbered from 0.
    pub hosts: usize,
    /// The number of the latest change; 0 if there was none since the start.
    pub latest_change: u64,
    /// In key order. They cover the whole key space, unless `since` is set.
    pub partitions: Vec<PartitionView>,
    /// Oldest first.
    pub changes: Vec<ChangeView>,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionView {
    /// Its number. A split or merge gives new numbers.
    pub id: u64,
    /// The host that serves it, by its number on its node.
    pub host: u64,
    /// The name of its node, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Grows with every change of its owner or range.
    pub epoch: u64,
    /// Which stripe of the range it is; none when the range is not striped.
    pub stripe: Option<StripeView>,
    /// Its lowest key, hexadecimal.
    pub low: String,
    /// The first key above it, hexadecimal; none at the end of the key space.
    pub high: Option<String>,
    /// `low` as text.
    pub from: String,
    /// `high` as text.
    pub to: Option<String>,
    /// Requests since its host opened it: the sum of the next three.
    pub requests: u64,
    /// Reads of one account, container or blob.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Pages of names, and steps of walks over rows.
    pub lists: u64,
    /// Writes refused because the queue was too long.
    pub refused: u64,
    /// Processor time of its commits and reads, microseconds.
    pub cpu_us: u64,
    /// Bytes of log records made durable.
    pub log_bytes: u64,
    /// The longest queue wait of a write in the last eighth of a second, microseconds.
    pub queue_age_us: u64,
    /// Rows in its runs, including old versions and rows outside of its range.
    pub rows: u64,
    /// Bytes of those runs.
    pub run_bytes: u64,
    /// Memory of its memtables.
    pub memtable_bytes: u64,
    /// Extents of its log.
    pub log_extents: u64,
    /// Why it accepts no writes.
    pub stopped: Option<String>,
}

/// The stripe of its range that a partition serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeView {
    /// From 0.
    pub number: u8,
    /// How many stripes the range has.
    pub of: u8,
}

/// A change of the map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeView {
    /// Counts from 1 at the start of the process.
    pub number: u64,
    /// When, ISO 8601.
    pub at: String,
    /// `split`, `merge`, `move`, `stripe` or `unstripe`.
    pub kind: String,
    /// The partitions before, in key order.
    pub from: Vec<u64>,
    /// The partitions after, in key order.
    pub to: Vec<u64>,
    /// The lowest key of their range, hexadecimal.
    #[serde(default)]
    pub low: String,
    /// The first key above it; none at the end of the key space.
    #[serde(default)]
    pub high: Option<String>,
    /// The host that serves them since, by its number on its node.
    pub host: u64,
    /// The name of its node, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How long writes to the range waited, milliseconds.
    pub pause_ms: f64,
}

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The partitions that cover the range now, in key order.
    pub partitions: Vec<u64>,
    /// The number of changes of the map.
    pub changes: usize,
    /// The longest pause of writes, milliseconds.
    pub pause_ms: f64,
}

impl MapView {
    /// All partitions, if this has those that changed since `before`, and `before` has all.
    #[must_use]
    pub fn over(mut self, before: &Self) -> Self {
        if self.since != Some(before.number) {
            return self;
        }
        let new: HashSet<u64> = self.partitions.iter().map(|partition| partition.id).collect();
        let gone: HashSet<u64> = self.gone.drain(..).collect();
        let stays = |old: &&PartitionView| !new.contains(&old.id) && !gone.contains(&old.id);
        self.partitions.extend(before.partitions.iter().filter(stays).cloned());
        // Hexadecimal texts sort like the keys.
        let place = |p: &PartitionView| p.stripe.map_or(0, |stripe| stripe.number);
        self.partitions.sort_by(|a, b| (&a.low, place(a)).cmp(&(&b.low, place(b))));
        self.since = None;
        self
    }
}

impl PartitionView {
    pub(super) fn new(status: PartitionStatus, known: &dyn Known) -> Self {
        let (low, high) = (status.range.low().as_bytes(), status.range.high());
        let counts = status.counts;
        Self {
            id: status.id.get(),
            host: status.host.number(),
            node: known.node(status.host.node()),
            epoch: status.epoch.get(),
            stripe: status.stripe.map(StripeView::from),
            low: hex(low),
            high: high.map(|high| hex(high.as_bytes())),
            from: names::text(low, known),
            to: high.map(|high| names::text(high.as_bytes(), known)),
            requests: counts.requests(),
            reads: counts.reads,
            writes: counts.writes,
            lists: counts.lists,
            refused: counts.refused,
            cpu_us: microseconds(counts.cpu),
            log_bytes: counts.log_bytes,
            queue_age_us: microseconds(status.queue_age),
            rows: status.rows,
            run_bytes: status.run_bytes,
            memtable_bytes: status.memtable_bytes,
            log_extents: status.log_extents,
            stopped: status.stopped,
        }
    }
}

impl From<Stripe> for StripeView {
    fn from(stripe: Stripe) -> Self {
        Self { number: stripe.number(), of: stripe.of() }
    }
}

impl ChangeView {
    pub(super) fn new(event: &ChangeEvent, known: &dyn Known) -> Self {
        Self {
            number: event.number,
            at: event.at.to_iso(),
            kind: event.kind.word().to_owned(),
            from: ids(&event.from),
            to: ids(&event.to),
            low: hex(event.range.low().as_bytes()),
            high: event.range.high().map(|high| hex(high.as_bytes())),
            host: event.host.number(),
            node: known.node(event.host.node()),
            pause_ms: milliseconds(event.pause),
        }
    }
}

impl From<Changed> for Made {
    fn from(changed: Changed) -> Self {
        let pause_ms = milliseconds(changed.pause);
        Self { partitions: ids(&changed.partitions), changes: 1, pause_ms }
    }
}

fn ids(partitions: &[PartitionId]) -> Vec<u64> {
    partitions.iter().map(|id| id.get()).collect()
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn milliseconds(pause: Duration) -> f64 {
    pause.as_secs_f64() * 1_000.0
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(id: u64, low: &str, requests: u64) -> PartitionView {
        PartitionView { id, low: low.to_owned(), requests, ..PartitionView::default() }
    }

    #[test]
    fn what_has_changed_is_laid_over_what_was() {
        let all = vec![partition(1, "", 1), partition(2, "0a", 2), partition(3, "0a00", 3)];
        let before = MapView { number: 5, partitions: all, ..MapView::default() };
        let since = MapView {
            number: 6,
            since: Some(5),
            gone: vec![2],
            partitions: vec![partition(4, "0a", 0), partition(5, "0a0", 0), partition(1, "", 9)],
            ..MapView::default()
        };
        let now = since.clone().over(&before);
        let ids: Vec<(u64, u64)> = now.partitions.iter().map(|p| (p.id, p.requests)).collect();
        assert_eq!(ids, [(1, 9), (4, 0), (5, 0), (3, 3)]);
        assert_eq!((now.number, now.since, now.gone), (6, None, Vec::new()));
        let other = MapView { number: 4, ..before };
        assert_eq!(since.clone().over(&other), since, "of another answer: as it is");
    }
}
