//! Which log and run extents are in use, and by how many partitions: after a split several share one, and while a partition
//! moves both hosts have it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;

/// The uses of a process's partitions. Not stored: it is what the manifests of all open partitions say.
#[derive(Debug, Default)]
pub(crate) struct Owned(Mutex<BTreeMap<ExtentId, usize>>);

impl Owned {
    /// One use more.
    pub(crate) fn add(&self, extent: ExtentId) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *uses.entry(extent).or_insert(0) += 1;
    }

    /// One use less; true when it was the last, which then still counts until [`Self::end`].
    pub(crate) fn leave(&self, extent: ExtentId) -> bool {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match uses.get_mut(&extent) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        }
    }

    /// Forgets an extent that is removed, or was never made.
    pub(crate) fn end(&self, extent: ExtentId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&extent);
    }

    /// All extents in use.
    pub(crate) fn all(&self) -> Vec<ExtentId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }
}
