//! What disks are opened with, and what is found on one.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::capacity::config::CapacityConfig;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;
use crate::capacity::metrics::CapacityMetrics;
use crate::env::Env;

/// What all disks of a node are opened with.
pub(crate) struct Opening {
    pub(crate) env: Env,
    pub(crate) config: CapacityConfig,
    pub(crate) metrics: CapacityMetrics,
    pub(crate) stop: CancellationToken,
}

/// A disk and what was found on it.
pub(crate) struct Opened {
    pub(crate) store: Arc<Store>,
    pub(crate) extents: Vec<Arc<Extent>>,
}
