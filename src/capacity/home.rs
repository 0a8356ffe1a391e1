//! Where an extent is, and what a new one is made of.

use std::sync::Arc;

use crate::capacity::ExtentKind;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;
use crate::types::Epoch;
use crate::types::ExtentId;

/// An extent and the disk it is on.
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
