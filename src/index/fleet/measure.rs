//! What partitions had to do since the last look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::index::engine::Partition;
use crate::index::load::Counts;
use crate::index::load::Load;
use crate::index::load::Meter;
use crate::index::load::PartitionLoad;
use crate::types::HostId;
use crate::types::PartitionId;

/// What was counted at the last look.
#[derive(Debug)]
pub(super) struct Look {
    at: Duration,
    /// Meters and not partitions: those hold memory.
    counted: BTreeMap<PartitionId, (Arc<Meter>, Counts)>,
}

impl Look {
    pub(super) fn new(now: Duration) -> Self {
        Self { at: now, counted: BTreeMap::new() }
    }

    /// The loads since the last look, in the order of `opened`.
    pub(super) fn again(
        &mut self,
        now: Duration,
        opened: &[(Arc<Partition>, HostId)],
    ) -> Vec<PartitionLoad> {
        let elapsed = now.saturating_sub(self.at);
        self.at = now;
        let mut counted = BTreeMap::new();
        let mut loads = Vec::new();
        for (partition, host) in opened {
            let core = &partition.core;
            let (counts, queue_age) = (core.meter.counts(), core.meter.tick());
            // What moved counts from nothing again, in another meter.
            let before = self.counted.get(&core.id);
            let before = before.filter(|(meter, _)| Arc::ptr_eq(meter, &core.meter));
            let before = before.map_or_else(Counts::default, |(_, counts)| *counts);
            let load = Load::of(&counts.since(&before), elapsed, queue_age);
            counted.insert(core.id, (Arc::clone(&core.meter), counts));
            let (rows, bytes) = core.own_size();
            let range = core.range().clone();
            loads.push(PartitionLoad { id: core.id, range, host: *host, load, rows, bytes });
        }
        self.counted = counted;
        loads
    }
}

#[cfg(test)]
mod tests;
