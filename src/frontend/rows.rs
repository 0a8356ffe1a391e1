//! Shared state of look-ups and commits of rows.

use std::sync::Arc;
use std::time::Duration;

use crate::env::Tasks;
use crate::index::Containers;
use crate::index::InFlight;
use crate::index::Router;

/// Access to the rows of the index.
#[derive(Debug)]
pub(crate) struct RowAccess {
    /// Routes to partitions.
    pub(crate) router: Arc<Router>,
    /// The running requests, for which reclaim and the purge of containers wait.
    pub(crate) inflight: InFlight,
    /// Writes into containers, and deletion of empty containers.
    pub(crate) containers: Arc<Containers>,
    /// Commits are tasks of their own.
    pub(crate) tasks: Tasks,
    /// The length of a day of retention.
    pub(crate) retention_day: Duration,
}
