//! Runs that are read or written in this process: they are removed only afterwards. Not stored, and
//! no record of who uses what: a pin holds a removal back, its absence permits none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;

/// The pins of a process.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<BTreeMap<ExtentId, usize>>);

/// Keeps an extent from being removed by this process until it is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    of: Arc<Pins>,
    extent: ExtentId,
}

/// An extent that this process does not remove while it has this.
#[derive(Debug)]
pub(crate) struct PinnedExtent {
    pub(crate) extent: ExtentId,
    pub(crate) pin: Pin,
}

impl Pins {
    /// One pin more.
    pub(crate) fn pin(self: &Arc<Self>, extent: ExtentId) -> Pin {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *pins.entry(extent).or_insert(0) += 1;
        Pin { of: Arc::clone(self), extent }
    }

    /// Whether anybody here reads or writes it.
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
