//! How far a check is.

use std::path::Path;

/// Told while a check runs.
pub trait Progress: Send {
    /// So many extents of a disk are verified.
    fn extents(&mut self, disk: &Path, done: u64, total: u64, bytes: u64);

    /// So many blobs of a partition are verified.
    fn blobs(&mut self, done: u64, bytes: u64);
}

/// Shows nothing.
#[cfg(test)]
#[derive(Debug)]
pub(in crate::node) struct Silent;

#[cfg(test)]
impl Progress for Silent {
    fn extents(&mut self, _disk: &Path, _done: u64, _total: u64, _bytes: u64) {}
    fn blobs(&mut self, _done: u64, _bytes: u64) {}
}
