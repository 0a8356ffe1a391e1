//! Copies of sealed extents on other disks.

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::disk::compact::CopiedFile;
use crate::capacity::disk::compact::Frames;
use crate::capacity::disk::files::unreadable;
use crate::capacity::disk::scrub::Findings;
use crate::capacity::disk::scrub::scrub_range;
use crate::capacity::disk::seal::sealed_changes;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::Extent;
use crate::capacity::extent::walk::Walker;
use crate::env::DiskError;

impl Store {
    /// Makes a durable copy of a sealed extent on another disk. The caller holds the extent's
    /// change lock, so the extent is not freed, fenced or compacted meanwhile.
    pub(crate) async fn copy_whole_to(
        &self,
        extent: &Arc<Extent>,
        to: &Arc<Self>,
    ) -> Result<Arc<Extent>, Error> {
        // The copy is read back because the original is removed after it.
        let frames = Frames { read_back: true, ..Frames::at_once(extent.alive()) };
        self.copy_part_to(extent, frames, to).await
    }

    /// Makes a durable copy with these frames only; all others are dead in it. If the caller does
    /// not hold the change lock, frames that are freed meanwhile are also dead in it.
    pub(crate) async fn copy_part_to(
        &self,
        extent: &Arc<Extent>,
        frames: Frames,
        to: &Arc<Self>,
    ) -> Result<Arc<Extent>, Error> {
        let end = extent.state().end;
        to.health.check()?;
        to.space.admit(&*to.disk, &to.env, &to.config, extent.kind, frames.bytes()).await?;
        let copied = self.copy_under_its_name(extent, to, frames).await?;
        let new = Extent::new(extent.id, extent.kind, copied.slot);
        new.state().dead = copied.map.ranges().gaps(end).into_iter().collect();
        to.metrics.extents.inc();
        // The catalog also gets the dead ranges: a start that finds the extent in the catalog does
        // not read its map.
        to.note(sealed_changes(&new)).await;
        Ok(Arc::new(new))
    }

    /// I12: reads a copy on this disk back. Each frame must match the checksums taken at ingest,
    /// with the extent's id and at its offset.
    pub(super) async fn verify_copy(
        &self,
        extent: &Extent,
        copied: &CopiedFile,
    ) -> Result<(), Error> {
        let failed = |error: DiskError| {
            if matches!(error, DiskError::Io { .. }) {
                // This disk is at fault, so the caller may try another one.
                self.poison("read back", &error)
            } else {
                unreadable(extent, &error)
            }
        };
        // Read from the device, not from the page cache.
        copied.file.drop_cache().await.map_err(failed)?;
        let (file, map) = (Arc::clone(&copied.file), Some(Arc::new(copied.map.clone())));
        let mut walker = Walker::new(Body { file, map }, extent.id);
        let mut found = Findings::default();
        let ranges = copied.map.ranges();
        for range in ranges.iter() {
            let read = scrub_range(&mut walker, extent.id, range, &mut found).await;
            read.map_err(failed)?;
        }
        let is_whole = found.report.corrupt.is_empty() && found.holed.is_empty();
        if !is_whole || found.report.bytes != ranges.total() {
            return Err(self.broken("I12", "a copy of an extent differs from the original"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::capacity::Capacity;
    use crate::capacity::ExtentKind;
    use crate::capacity::disk::store::path_of;
    use crate::capacity::extent::header::DATA_AT;
    use crate::capacity::tests::faults;
    use crate::env::disk_sim::SimDisk;
    use crate::telemetry::CapturedLog;
    use crate::types::Epoch;
    use crate::types::ExtentId;

    const ID: ExtentId = ExtentId::new(1);

    #[tokio::test(start_paused = true)]
    async fn copy_with_a_flipped_bit_breaks_i12() {
        let (from, to) = (SimDisk::new(1, 64 << 20), SimDisk::new(2, 64 << 20));
        let node = faults::open(vec![from.disk(), to.disk()]).await;
        node.create(ID, ExtentKind::Data, Epoch::new(1)).await.unwrap();
        let bytes = [Bytes::from(vec![7; 50_000])];
        faults::append(&node, ID, 0, &bytes).await.unwrap();
        node.seal(ID, Epoch::new(1)).await.unwrap();
        let home = node.home(ID).unwrap();
        let other = node.stores().into_iter().find(|store| store.place != home.store.place);
        let other = other.unwrap();
        let frames = Frames::at_once(home.extent.alive());
        let copied = home.store.copy_under_its_name(&home.extent, &other, frames).await.unwrap();
        other.verify_copy(&home.extent, &copied).await.unwrap();
        let sim = if other.place == 0 { &from } else { &to };
        assert!(sim.flip(&path_of(ID), DATA_AT + 10_000));
        let log = CapturedLog::default();
        let _kept = log.begin();
        other.health.tasks.expect_violation("I12");
        let done = other.verify_copy(&home.extent, &copied).await;
        assert!(matches!(done, Err(Error::Poisoned { .. })), "{done:?}");
        assert!(other.health.poisoned() && !home.store.health.poisoned());
        assert_eq!(log.lines_with(&["ERROR", "invariant=\"I12\""]), 1, "{}", log.text());
    }
}
