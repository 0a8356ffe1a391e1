//! The progress of a check.

use std::path::Path;

/// Gets the progress of a running check.
pub trait Progress: Send {
    /// The verified extents of a disk.
    fn extents(&mut self, disk: &Path, done: u64, total: u64, bytes: u64);

    /// The verified blobs of a partition.
    fn blobs(&mut self, done: u64, bytes: u64);
}

/// Ignores the progress.
#[cfg(test)]
#[derive(Debug)]
pub(in crate::node) struct Silent;

#[cfg(test)]
impl Progress for Silent {
    fn extents(&mut self, _disk: &Path, _done: u64, _total: u64, _bytes: u64) {}
    fn blobs(&mut self, _done: u64, _bytes: u64) {}
}
