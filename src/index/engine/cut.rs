//! A partition as of one instant, for a backup, and how the copy of its log ends there.
//!
//! The log goes on after the instant, in the same extent. So the copy of the log gets one extent
//! more. It holds only a manifest, which links to where the log ended at the instant, as the first
//! manifest of a partition that was split off does. A replay cuts off what comes after the link.

use std::sync::Arc;

use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::index::api::{Error, Full};
use crate::index::engine::change::Held;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::Pin;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer;
use crate::index::engine::partition::Partition;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;

/// A partition that commits nothing. It goes on when this is dropped.
#[derive(Debug)]
pub(crate) struct Paused(Option<Held>);

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.resume();
        }
    }
}

impl Partition {
    /// Has the partition commit nothing until the answer is dropped. Not cancel safe.
    ///
    /// # Errors
    /// Why the partition takes no writes.
    pub(crate) async fn pause(&self) -> Result<Paused, Failed> {
        self.hold().await.map(|held| Paused(Some(held)))
    }
}

impl Paused {
    /// The partition as it is now.
    pub(crate) fn cut(&self) -> Option<CutPartition> {
        let held = self.0.as_ref()?;
        let descriptor = held.log.descriptor.clone();
        let manifest = Manifest {
            partition: descriptor.id,
            epoch: descriptor.epoch,
            previous: held.log.link,
            flushed: held.flushed,
            time: held.time,
            runs: held.sources.entries(),
        };
        Some(CutPartition { descriptor, manifest })
    }
}

/// A partition as of one instant.
#[derive(Clone, Debug)]
pub struct CutPartition {
    descriptor: PartitionDescriptor,
    manifest: Manifest,
}

impl CutPartition {
    /// As the coordinator has it.
    #[must_use]
    pub fn descriptor(&self) -> &PartitionDescriptor {
        &self.descriptor
    }

    /// Its logs and runs.
    pub fn extents(&self) -> impl Iterator<Item = ExtentId> {
        let runs = self.manifest.runs.iter().map(|run| run.footer.extent);
        self.descriptor.log.iter().copied().chain(runs)
    }

    /// Ends the copy of its log with an extent under a new id. Returns the descriptor of the copy.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Unavailable`].
    pub async fn end_log(
        &self,
        copies: &dyn Capacity,
        extent: ExtentId,
    ) -> Result<PartitionDescriptor, Error> {
        let epoch = self.descriptor.epoch;
        let failed = |error: capacity::Error| Error::from(Failed::from(error));
        let record = self.manifest.encode().ok_or(Error::Full(Full::Disks))?;
        copies.create(extent, ExtentKind::Log, epoch).await.map_err(failed)?;
        writer::write_first(copies, extent, epoch, vec![record]).await?;
        copies.seal(extent, epoch).await.map_err(failed)?;
        let mut descriptor = self.descriptor.clone();
        descriptor.log.push(extent);
        Ok(descriptor)
    }
}

/// Logs and runs that this process does not remove until this is dropped.
#[derive(Debug)]
pub struct KeptExtents {
    context: Arc<HostContext>,
    pins: Vec<Pin>,
}

impl KeptExtents {
    /// Keeps extents that partitions use.
    pub(crate) fn new(context: &Arc<HostContext>, extents: Vec<ExtentId>) -> Self {
        let pins = extents.into_iter().map(|extent| context.pins.pin(extent)).collect();
        Self { context: Arc::clone(context), pins }
    }
}

impl Drop for KeptExtents {
    fn drop(&mut self) {
        self.pins.clear();
        self.context.wake.notify_one();
    }
}
