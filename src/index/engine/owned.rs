//! Which log and run extents are in use, and by how many partitions: after a split several share one, and while a partition
//! moves both hosts have it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use crate::types::ExtentId;

/// The uses of a process's partitions. Not stored: it is what the manifests of all open partitions say.
#[derive(Debug, Default)]
pub(crate) struct Owned(Mutex<BTreeMap<ExtentId, usize>>, AtomicUsize);

/// As long as it lives, no log or run that was in use is removed.
#[derive(Debug)]
pub struct HeldExtents(Arc<Owned>);

impl Drop for HeldExtents {
    fn drop(&mut self) {
        self.0.1.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Owned {
    /// Has all that is in use stay, until the guard is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> HeldExtents {
        self.1.fetch_add(1, Ordering::AcqRel);
        HeldExtents(Arc::clone(self))
    }

    /// Whether what is left has to wait.
    pub(crate) fn is_held(&self) -> bool {
        self.1.load(Ordering::Acquire) > 0
    }

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
