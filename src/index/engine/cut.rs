//! The state of a partition at one instant, for a backup, and the end of the log in its copy.
//!
//! The log continues after the instant, in the same extent. So the copy of the log gets one more
//! extent. It holds only a manifest with a link to the end of the log at that instant, like the
//! first manifest of a child after a split. A replay ignores records after the link.

use std::sync::Arc;

use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::index::api::{Error, Full};
use crate::index::engine::answers::Answers;
use crate::index::engine::change::Held;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::Pin;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::writer;
use crate::index::engine::partition::Partition;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;

/// A paused partition: it commits nothing until this is dropped.
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
    /// Pauses the partition until the returned value is dropped. Not cancel safe.
    ///
    /// # Errors
    /// The reason why the partition takes no writes.
    pub(crate) async fn pause(&self) -> Result<Paused, Failed> {
        self.hold().await.map(|held| Paused(Some(held)))
    }
}

impl Paused {
    /// The state of the partition at this instant.
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
            // No process of the restored store sends a write of this one again.
            answers: Answers::default(),
        };
        Some(CutPartition { descriptor, manifest })
    }
}

/// The state of a partition at one instant.
#[derive(Clone, Debug)]
pub struct CutPartition {
    descriptor: PartitionDescriptor,
    manifest: Manifest,
}

impl CutPartition {
    /// Its descriptor in the coordinator.
    #[must_use]
    pub fn descriptor(&self) -> &PartitionDescriptor {
        &self.descriptor
    }

    /// Its logs and runs.
    pub fn extents(&self) -> impl Iterator<Item = ExtentId> {
        let runs = self.manifest.runs.iter().map(|run| run.footer.extent);
        self.descriptor.log.iter().copied().chain(runs)
    }

    /// Ends the copy of its log with a new extent under the id `extent`. Returns the descriptor of
    /// the copy.
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

/// Keeps logs and runs: this process does not remove them until this is dropped.
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
