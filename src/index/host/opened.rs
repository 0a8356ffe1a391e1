//! The partitions open here, as a set that splits change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::api::Error;
use crate::index::engine::Partition;
use crate::index::map::PartitionDescriptor;
use crate::types::PartitionId;

/// A partition that could not be opened because files it needs are damaged or missing. Nobody
/// serves it until the next start, and nothing of its files is removed.
#[derive(Clone, Debug)]
pub(crate) struct Quarantined {
    /// Which names that concerns.
    pub(crate) descriptor: PartitionDescriptor,
    /// What is wrong.
    pub(crate) error: Error,
}

/// Partitions by id.
#[derive(Debug)]
pub(crate) struct Opened {
    partitions: RwLock<BTreeMap<PartitionId, Arc<Partition>>>,
    quarantined: Vec<Quarantined>,
    /// Grows with every change of the set.
    version: AtomicU64,
}

impl Opened {
    pub(crate) fn new(
        partitions: BTreeMap<PartitionId, Arc<Partition>>,
        quarantined: Vec<Quarantined>,
    ) -> Self {
        Self { partitions: RwLock::new(partitions), quarantined, version: AtomicU64::new(0) }
    }

    /// Those that do not serve.
    pub(crate) fn quarantined(&self) -> &[Quarantined] {
        &self.quarantined
    }

    pub(crate) fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Another number whenever the set is another.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// All of them as of now, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Stops partitions, then lets others take their place: nobody is served by both (I6).
    pub(crate) fn replace(&self, old: &[Arc<Partition>], new: Vec<Partition>) {
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        for old in old {
            old.core.lose();
            partitions.remove(&old.core.id);
        }
        partitions.extend(new.into_iter().map(|new| (new.core.id, Arc::new(new))));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Lets one more serve.
    pub(crate) fn add(&self, new: Partition) {
        self.replace(&[], vec![new]);
    }
}
