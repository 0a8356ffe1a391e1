//! Where an extent is.

use std::sync::Arc;

use crate::capacity::extent::Extent;
use crate::capacity::store::Store;

/// An extent and the disk it is on.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) store: Arc<Store>,
    pub(super) extent: Arc<Extent>,
}
