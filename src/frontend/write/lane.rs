//! Open extents that large bodies take turns in.

use std::sync::atomic::AtomicUsize;

use tokio::sync::Mutex;

use crate::frontend::write::extent::ExtentWriter;

/// An open extent for large bodies. Alone in it, a body lies in one piece.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) writer: Mutex<ExtentWriter>,
    /// Bodies writing here now.
    pub(super) users: AtomicUsize,
}
