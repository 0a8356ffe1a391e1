//! Copies of sealed extents on other disks.

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::disk::compact::Frames;
use crate::capacity::disk::seal::sealed_changes;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::Extent;

impl Store {
    /// Makes a durable copy of a sealed extent on another disk. The caller holds the extent's turn,
    /// so nothing of it is freed, fenced or compacted meanwhile.
    pub(crate) async fn copy_whole_to(
        &self,
        extent: &Arc<Extent>,
        to: &Arc<Self>,
    ) -> Result<Arc<Extent>, Error> {
        self.copy_part_to(extent, Frames::at_once(extent.alive()), to).await
    }

    /// The same with these frames alone; all others are dead in the copy. Without the turn frames
    /// that are freed meanwhile are dead in it too.
    pub(crate) async fn copy_part_to(
        &self,
        extent: &Arc<Extent>,
        frames: Frames,
        to: &Arc<Self>,
    ) -> Result<Arc<Extent>, Error> {
        let end = extent.state().end;
        to.health.check()?;
        to.space.admit(&*to.disk, &to.env, &to.config, extent.kind, frames.bytes()).await?;
        let (slot, copied) = self.copy_under_its_name(extent, (to, frames)).await?;
        let new = Extent::new(extent.id, extent.kind, slot);
        new.state().dead = copied.gaps(end).into_iter().collect();
        to.metrics.extents.inc();
        // With what is dead in it: a start that finds the extent in the catalog reads no map.
        to.note(sealed_changes(&new)).await;
        Ok(Arc::new(new))
    }
}
