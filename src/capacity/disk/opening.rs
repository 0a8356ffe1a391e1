//! The parameters of opening disks, and the result for each disk.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::capacity::config::CapacityConfig;
use crate::capacity::damages::Damages;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;
use crate::capacity::metrics::CapacityMetrics;
use crate::env::Env;

/// The parameters that all disks of a node share.
pub(crate) struct Opening {
    pub(crate) env: Env,
    pub(crate) config: CapacityConfig,
    pub(crate) metrics: CapacityMetrics,
    pub(crate) damages: Damages,
    pub(crate) stop: CancellationToken,
}

/// An open disk and the extents on it.
pub(crate) struct Opened {
    pub(crate) store: Arc<Store>,
    pub(crate) extents: Vec<Arc<Extent>>,
}
