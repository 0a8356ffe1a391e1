//! Which log and run extents are in use, and by how many partitions: after a split several share one, and while a partition
//! moves both hosts have it.

use std::collections::BTreeMap;
use std::sync::Arc;
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

    /// Takes back a use that came to nothing. The last one stays: a descriptor may name the extent.
    fn withdraw(&self, extent: ExtentId) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = uses.get_mut(&extent).filter(|count| **count > 1) {
            *count -= 1;
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

/// Uses that were noted for a partition which is not open yet. Dropped without a word they are
/// taken back, but nothing is removed: another partition of the process, or one that is opened
/// later, may need what they name.
#[derive(Debug)]
pub(crate) struct Uses {
    owned: Arc<Owned>,
    extents: Vec<ExtentId>,
}

impl Uses {
    pub(crate) fn new(owned: &Arc<Owned>) -> Self {
        Self { owned: Arc::clone(owned), extents: Vec::new() }
    }

    /// One use more.
    pub(crate) fn note(&mut self, extent: ExtentId) {
        self.owned.add(extent);
        self.extents.push(extent);
    }

    /// The partition is open, and ends them itself.
    pub(crate) fn keep(mut self) {
        self.extents.clear();
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        self.extents.iter().for_each(|extent| self.owned.withdraw(*extent));
    }
}
