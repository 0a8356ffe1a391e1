//! Files of extents that are open: bounded, since there may be many more extents, each partition's
//! log one of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::capacity::extent::memory::Extent;

/// Extents with an open file, the one that is open longest first.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<VecDeque<Arc<Extent>>>);

impl OpenFiles {
    pub(super) fn push(&self, extent: Arc<Extent>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(extent);
    }

    /// The one that is open longest, if there are more than `max`.
    pub(super) fn pop_beyond(&self, max: usize) -> Option<Popped<'_>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let extent = if open.len() > max { open.pop_front() } else { None };
        extent.map(|extent| Popped { files: self, extent, closed: false })
    }
}

/// One that may be closed. It is listed again unless it was: whoever closes it, a reader perhaps,
/// may be gone in the middle.
pub(super) struct Popped<'a> {
    files: &'a OpenFiles,
    pub(super) extent: Arc<Extent>,
    pub(super) closed: bool,
}

impl Drop for Popped<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.files.push(Arc::clone(&self.extent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::ExtentKind;
    use crate::capacity::extent::header::Slot;
    use crate::types::Epoch;
    use crate::types::ExtentId;

    #[test]
    fn extent_whose_closing_is_cut_off_is_listed_still() {
        let files = OpenFiles::default();
        let slot = Slot::new(1, Epoch::new(1));
        let extent = Arc::new(Extent::new(ExtentId::new(1), ExtentKind::Log, slot));
        files.push(extent);
        drop(files.pop_beyond(0).unwrap());
        let mut popped = files.pop_beyond(0).unwrap();
        popped.closed = true;
        drop(popped);
        assert!(files.pop_beyond(0).is_none(), "closed");
    }
}
