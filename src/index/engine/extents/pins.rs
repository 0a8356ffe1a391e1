//! Pins delay the removal of runs that this process reads or writes. They are not stored and record
//! no use: a pin prevents a removal, but a missing pin permits none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;

/// The pins of a process.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<BTreeMap<ExtentId, usize>>);

/// A pin of an extent: until it is dropped this process does not remove the extent.
#[derive(Debug)]
pub(crate) struct Pin {
    of: Arc<Pins>,
    extent: ExtentId,
}

/// An extent and its pin.
#[derive(Debug)]
pub(crate) struct PinnedExtent {
    pub(crate) extent: ExtentId,
    pub(crate) pin: Pin,
}

impl Pins {
    /// Pins an extent.
    pub(crate) fn pin(self: &Arc<Self>, extent: ExtentId) -> Pin {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *pins.entry(extent).or_insert(0) += 1;
        Pin { of: Arc::clone(self), extent }
    }

    /// Whether this process has a pin of the extent.
    pub(crate) fn is_pinned(&self, extent: ExtentId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&extent)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = pins.get_mut(&self.extent) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.extent);
            }
        }
    }
}
