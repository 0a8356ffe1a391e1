//! Freeing space: dead ranges, holes, removal.

use std::ops::Range;
use std::sync::Arc;

use crate::capacity::disk::catalog::Change;
use crate::capacity::disk::store::{Store, folder_of, path_of};
use crate::capacity::extent::header::file_offset;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::extent::ranges::Ranges;
use crate::capacity::units::{offset_down, offset_up};
use crate::capacity::{Audited, Error};
use crate::types::ExtentOffset;

/// The result of marking ranges of an extent as dead.
struct MarkedDead {
    /// Changes for the catalog.
    changes: Vec<Change>,
    /// Logical ranges of pages that can be given back to the file system.
    holes: Ranges,
    /// Whether a sealed extent has no live byte left.
    is_wholly_dead: bool,
}

impl Store {
    /// Marks frame ranges of one extent as dead and releases their pages. Removes a sealed extent
    /// without live bytes.
    pub(crate) async fn free(
        &self,
        extent: &Arc<Extent>,
        ranges: &[Range<ExtentOffset>],
    ) -> Result<(), Error> {
        self.health.check()?;
        // Under the change lock, so that the catalog gets frees of adjacent ranges in the order of
        // their merges.
        let _changing = extent.changing.lock().await;
        let Some(marked) = self.mark_dead(extent, ranges) else { return Ok(()) };
        if marked.is_wholly_dead {
            return self.remove_now(extent).await;
        }
        self.note(marked.changes).await;
        self.punch(extent, &marked.holes).await;
        if extent.state().slot.sealed {
            self.mark_sparse(extent);
        }
        Ok(())
    }

    /// Marks all bytes of a sealed extent that are not in `live` as dead.
    pub(crate) async fn retain(
        &self,
        extent: &Arc<Extent>,
        live: &[Range<ExtentOffset>],
        audited: Audited,
    ) -> Result<(), Error> {
        let end = {
            let state = extent.state();
            if state.status == Status::Removed {
                return Err(extent.missing());
            }
            if !state.slot.sealed {
                return Ok(());
            }
            state.end
        };
        let live: Ranges = live.iter().cloned().collect();
        self.free(extent, &live.gaps(end)).await?;
        if audited == Audited::Whole {
            let mut state = extent.state();
            state.frees = state.frees.after_audit();
        }
        Ok(())
    }

    /// Marks ranges as dead; `None` if the extent was removed.
    fn mark_dead(&self, extent: &Extent, ranges: &[Range<ExtentOffset>]) -> Option<MarkedDead> {
        let mut state = extent.state();
        if state.status == Status::Removed {
            return None;
        }
        let before = state.dead.total();
        let mut changes = Vec::new();
        let mut holes = Ranges::default();
        for range in ranges {
            let range = range.start..range.end.min(state.end);
            let Some(merged) = state.dead.insert(range.clone()) else { continue };
            // Pages that are wholly dead with this range, alone or together with adjacent dead
            // ranges.
            let start = offset_up(merged.range.start).max(offset_down(range.start));
            let end = offset_down(merged.range.end).min(offset_up(range.end));
            holes.insert(start..end.max(start));
            changes.push(Change::Dead {
                extent: extent.id,
                range: merged.range,
                swallowed: merged.swallowed,
            });
        }
        self.metrics.freed_bytes.inc_by(state.dead.total() - before);
        // An open extent is not punched: recovery follows its frames and would take a hole for its
        // end.
        let sealed = state.slot.sealed;
        if !sealed {
            holes = Ranges::default();
        }
        let is_wholly_dead =
            sealed && self.config.removes_dead() && state.dead.total() >= state.end.get();
        Some(MarkedDead { changes, holes, is_wholly_dead })
    }

    /// Punches all dead ranges of a newly sealed extent.
    pub(crate) async fn punch_all(&self, extent: &Arc<Extent>) {
        let holes = {
            let state = extent.state();
            state.dead.iter().map(|r| offset_up(r.start)..offset_down(r.end)).collect()
        };
        self.punch(extent, &holes).await;
    }

    /// Punches holes. A failure is only logged: the space is not given back. Some file systems
    /// cannot punch holes.
    async fn punch(&self, extent: &Arc<Extent>, holes: &Ranges) {
        for hole in holes.iter() {
            let Ok(body) = self.body(extent).await else { return };
            // In a compacted file, pages of logical offsets are not pages of the file. The next
            // compaction frees the space.
            if body.map.is_some() {
                return;
            }
            if let Err(error) =
                body.file.punch_hole(file_offset(hole.start).get(), hole.end - hole.start).await
            {
                tracing::warn!(
                    extent = %extent.id, %error,
                    "freed frames still take disk space; a compaction may give it back"
                );
                return;
            }
        }
    }

    /// Removes an extent and its file.
    pub(crate) async fn remove(&self, extent: &Arc<Extent>) -> Result<(), Error> {
        self.health.check()?;
        let _changing = extent.changing.lock().await;
        self.remove_now(extent).await
    }

    /// Removes an extent and its file; the caller holds the change lock.
    pub(crate) async fn remove_now(&self, extent: &Arc<Extent>) -> Result<(), Error> {
        let is_again = {
            let mut state = extent.state();
            let is_again = state.status == Status::Removed;
            state.status = Status::Removed;
            state.file = None;
            state.map = None;
            state.tail.clear();
            is_again
        };
        // An earlier removal may have failed or panicked at any step, so each step that can fail is
        // repeated. The next steps cannot fail, and must not count the removal twice.
        if !is_again {
            extent.set_window(None);
            self.metrics.removed_extents.inc();
            self.metrics.extents.dec();
        }
        self.disk.remove(&path_of(extent.id)).await.map_err(|e| self.poison("remove", &e))?;
        self.note(vec![Change::Removed { extent: extent.id }]).await;
        self.sync_folder(&folder_of(extent.id)).await
    }
}
