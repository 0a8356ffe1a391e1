//! What partitions had to do since the last sample.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::index::api::LoadReport;
use crate::index::api::PartitionLoad;
use crate::index::engine::Partition;
use crate::index::engine::RunSize;
use crate::index::load::Counts;
use crate::index::load::Load;
use crate::index::load::Meter;
use crate::types::HostId;
use crate::types::PartitionId;

/// Sizes are refreshed every eighth sample; computing them is slow.
const SIZES_EVERY: usize = 8;

/// A partition, and what was counted of it at the last sample.
#[derive(Debug)]
struct Counted {
    partition: Arc<Partition>,
    counts: Counts,
}

impl Counted {
    fn added(&mut self) -> Counts {
        let counts = self.partition.core.meter.counts();
        counts.since(&std::mem::replace(&mut self.counts, counts))
    }
}

/// The partitions that are sampled, and their loads at the last sample. Thousands of them are
/// mostly the same and at rest, so a sample costs little more than reading their counters.
#[derive(Debug)]
pub(super) struct LoadSample {
    counted: Vec<Counted>,
    /// Its partitions are in the same order.
    report: LoadReport,
    /// Samples so far.
    number: usize,
    /// By those that are no more, after the last sample.
    left: Counts,
    /// By all together, since the sample before; those that are no more too.
    pub(super) added: Counts,
}

impl LoadSample {
    /// Follows nothing yet.
    pub(super) fn new(now: Duration, hosts: Vec<HostId>) -> Self {
        let (left, added) = (Counts::default(), Counts::default());
        let report = LoadReport { at: now, hosts, partitions: Vec::new() };
        Self { counted: Vec::new(), report, number: 0, left, added }
    }

    /// Samples these partitions from now on, in this order.
    pub(super) fn follow(&mut self, opened: Vec<(Arc<Partition>, HostId)>) {
        let before = std::mem::take(&mut self.counted);
        let loads = std::mem::take(&mut self.report.partitions);
        let before =
            before.into_iter().zip(loads).map(|(counted, load)| (load.id, (counted, load)));
        let mut before: BTreeMap<PartitionId, _> = before.collect();
        for (partition, host) in opened {
            let core = &partition.core;
            // What moved counts from nothing again, in another meter.
            let is_same = |(counted, _): &(Counted, _)| {
                Arc::ptr_eq(&counted.partition.core.meter, &core.meter)
            };
            let known = before.get(&core.id).is_some_and(is_same).then(|| before.remove(&core.id));
            let (counts, load) = known.flatten().map_or_else(
                || (Counts::default(), unloaded(&partition, host)),
                |(counted, load)| (counted.counts, load),
            );
            self.counted.push(Counted { partition, counts });
            self.report.partitions.push(load);
        }
        // What partitions did that were split, merged or moved meanwhile.
        for (mut counted, _) in before.into_values() {
            self.left = self.left.plus(&counted.added());
        }
    }

    /// Finds the loads since the last sample; `changing` ones are under a change of the map.
    pub(super) fn take(&mut self, now: Duration, changing: &BTreeSet<PartitionId>) {
        let elapsed = now.saturating_sub(self.report.at);
        self.report.at = now;
        self.number += 1;
        self.added = std::mem::take(&mut self.left);
        let all = self.counted.iter_mut().zip(&mut self.report.partitions);
        for (place, (counted, load)) in all.enumerate() {
            let queue_age = counted.partition.core.meter.tick();
            let added = counted.added();
            self.added = self.added.plus(&added);
            load.load = Load::of(&added, elapsed, queue_age);
            load.changing = changing.contains(&load.id);
            if (place + self.number).is_multiple_of(SIZES_EVERY) {
                let size = counted.partition.core.own_size();
                (load.rows, load.bytes) = (size.rows, size.bytes);
            }
        }
    }

    /// What was found.
    pub(super) const fn report(&self) -> &LoadReport {
        &self.report
    }

    /// One of them.
    pub(super) fn of(&self, id: PartitionId) -> Option<(&PartitionLoad, &Meter)> {
        let mut all = self.report.partitions.iter().zip(&self.counted);
        let (load, counted) = all.find(|(load, _)| load.id == id)?;
        Some((load, &counted.partition.core.meter))
    }
}

fn unloaded(partition: &Partition, host: HostId) -> PartitionLoad {
    let core = &partition.core;
    let RunSize { rows, bytes } = core.own_size();
    PartitionLoad {
        id: core.id,
        range: core.range().clone(),
        stripe: core.keys.stripe(),
        host,
        load: Load::default(),
        rows,
        bytes,
        changing: false,
    }
}

#[cfg(test)]
mod tests;
