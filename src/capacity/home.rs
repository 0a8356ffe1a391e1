//! The disk that holds an extent, and the properties of a new extent.

use std::sync::Arc;

use crate::capacity::ExtentKind;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;
use crate::types::Epoch;
use crate::types::ExtentId;

/// An extent and the disk that holds it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) store: Arc<Store>,
    pub(super) extent: Arc<Extent>,
}

/// An extent to be created.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewExtent {
    pub(super) extent: ExtentId,
    pub(super) kind: ExtentKind,
    pub(super) epoch: Epoch,
}
