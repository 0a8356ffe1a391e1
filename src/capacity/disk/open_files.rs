//! The list of extents with an open file. It is bounded, because there may be many more extents;
//! each partition has a log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::capacity::extent::memory::Extent;

/// Extents with an open file, in the order in which the files were opened.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<VecDeque<Arc<Extent>>>);

impl OpenFiles {
    pub(super) fn push(&self, extent: Arc<Extent>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(extent);
    }

    /// Takes the extent whose file has been open longest, if there are more than `max`.
    pub(super) fn pop_beyond(&self, max: usize) -> Option<Popped<'_>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let extent = if open.len() > max { open.pop_front() } else { None };
        extent.map(|extent| Popped { files: self, extent, closed: false })
    }
}

/// An extent whose file may be closed. A drop puts it back in the list unless `closed` is set,
/// because the task that closes it may be cancelled.
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
