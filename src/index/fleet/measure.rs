//! What partitions had to do since the last look.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
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
    /// By all together, since the look before; those that are no more too.
    pub(super) added: Counts,
}

impl Look {
    pub(super) fn new(now: Duration) -> Self {
        Self { at: now, counted: BTreeMap::new(), added: Counts::default() }
    }

    /// The loads since the last look, in the order of `opened`; `changing` ones are under a change of the map.
    pub(super) fn again(
        &mut self,
        now: Duration,
        opened: &[(Arc<Partition>, HostId)],
        changing: &BTreeSet<PartitionId>,
    ) -> Vec<PartitionLoad> {
        let elapsed = now.saturating_sub(self.at);
        self.at = now;
        self.added = Counts::default();
        let mut counted = BTreeMap::new();
        let mut loads = Vec::new();
        for (partition, host) in opened {
            let core = &partition.core;
            let (counts, queue_age) = (core.meter.counts(), core.meter.tick());
            // What moved counts from nothing again, in another meter.
            let same = |(meter, _): &&mut (Arc<Meter>, Counts)| Arc::ptr_eq(meter, &core.meter);
            let before = match self.counted.get_mut(&core.id).filter(same) {
                Some((_, before)) => std::mem::replace(before, counts),
                None => Counts::default(),
            };
            let added = counts.since(&before);
            self.added = self.added.plus(&added);
            let load = Load::of(&added, elapsed, queue_age);
            counted.insert(core.id, (Arc::clone(&core.meter), counts));
            let (rows, bytes) = core.own_size();
            loads.push(PartitionLoad {
                id: core.id,
                range: core.range().clone(),
                stripe: core.keys.stripe(),
                host: *host,
                load,
                rows,
                bytes,
                changing: changing.contains(&core.id),
            });
        }
        // What partitions did that were split, merged or moved meanwhile; of the others nothing is left.
        for (meter, before) in std::mem::replace(&mut self.counted, counted).values() {
            self.added = self.added.plus(&meter.counts().since(before));
        }
        loads
    }
}

#[cfg(test)]
mod tests;
