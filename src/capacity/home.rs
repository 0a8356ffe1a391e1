//! The disk that holds an extent.

use std::sync::Arc;

use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;

/// An extent and the disk that holds it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) store: Arc<Store>,
    pub(super) extent: Arc<Extent>,
}
