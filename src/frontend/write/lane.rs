//! Open extents for large bodies.

use std::sync::atomic::AtomicUsize;

use tokio::sync::Mutex;

use crate::frontend::write::extent::ExtentWriter;

/// An open extent for large bodies. A body that is alone in it is contiguous.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) writer: Mutex<ExtentWriter>,
    /// Bodies that are being written to it.
    pub(super) users: AtomicUsize,
}
