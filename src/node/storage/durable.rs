//! The durable state of a node: disks, extents, coordinator.

use std::path::PathBuf;
use std::sync::Arc;

use crate::capacity::CapacityNode;
use crate::capacity::OpenError;
use crate::coordinator::Coordinator;
use crate::node::error::NodeError;

/// The durable state of a node.
#[derive(Debug)]
pub struct Storage {
    /// The extents of all disks.
    pub capacity: Arc<CapacityNode>,
    /// Descriptors and counters.
    pub coordinator: Arc<dyn Coordinator>,
}

/// Adds to an error the data directory that it is about.
pub(in crate::node) fn open_failed(data: &[PathBuf], error: OpenError) -> NodeError {
    let one = error.disk().and_then(|disk| data.get(disk)).map(std::slice::from_ref);
    let paths: Vec<String> =
        one.unwrap_or(data).iter().map(|path| path.display().to_string()).collect();
    NodeError::Capacity { path: paths.join(", "), error }
}
