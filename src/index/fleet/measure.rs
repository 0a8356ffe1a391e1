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

/// The rows and bytes of a partition are looked at in one of so many looks: they grow slowly, and finding them out takes long.
const SIZES_EVERY: usize = 8;

/// What was counted of a partition at the last look.
#[derive(Debug)]
struct Counted {
    meter: Arc<Meter>,
    counts: Counts,
    /// Rows and bytes.
    size: (u64, u64),
}

/// What was counted at the last look.
#[derive(Debug)]
pub(super) struct Look {
    at: Duration,
    /// Meters and not partitions: those hold memory.
    counted: BTreeMap<PartitionId, Counted>,
    /// Looks so far.
    number: usize,
    /// By all together, since the look before; those that are no more too.
    pub(super) added: Counts,
}

impl Look {
    pub(super) fn new(now: Duration) -> Self {
        Self { at: now, counted: BTreeMap::new(), number: 0, added: Counts::default() }
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
        self.number += 1;
        let mut counted = BTreeMap::new();
        let mut loads = Vec::new();
        for (place, (partition, host)) in opened.iter().enumerate() {
            let core = &partition.core;
            let (counts, queue_age) = (core.meter.counts(), core.meter.tick());
            // What moved counts from nothing again, in another meter.
            let same = |of: &&mut Counted| Arc::ptr_eq(&of.meter, &core.meter);
            let known = self.counted.get_mut(&core.id).filter(same);
            let size = known.as_ref().map(|known| known.size);
            let size = size.filter(|_| !(place + self.number).is_multiple_of(SIZES_EVERY));
            let size = size.unwrap_or_else(|| core.own_size());
            let before =
                known.map_or_else(Counts::default, |of| std::mem::replace(&mut of.counts, counts));
            let added = counts.since(&before);
            self.added = self.added.plus(&added);
            let load = Load::of(&added, elapsed, queue_age);
            counted.insert(core.id, Counted { meter: Arc::clone(&core.meter), counts, size });
            let (rows, bytes) = size;
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
        for before in std::mem::replace(&mut self.counted, counted).values() {
            self.added = self.added.plus(&before.meter.counts().since(&before.counts));
        }
        loads
    }
}

#[cfg(test)]
mod tests;
