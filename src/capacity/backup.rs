//! Copies of whole extents on another node's disks: the bytes of a backup.
//!
//! A sealed extent never changes, except that parts of it are freed. So an extent whose copy ends
//! at the same offset is not copied again. Open extents are sealed first, as for a drain; their
//! writers roll to new ones.

use std::ops::Range;
use std::sync::Arc;

use crate::capacity::Capacity;
use crate::capacity::Error;
use crate::capacity::disk::compact::Frames;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::extent::ranges::{Ranges, offsets};
use crate::capacity::home::Home;
use crate::capacity::node::CapacityNode;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

impl CapacityNode {
    /// The id of the store, as in the `format` file of each disk and in the header of each extent.
    #[must_use]
    pub fn store_id(&self) -> Option<u128> {
        self.stores().first().map(|store| store.store_id)
    }

    /// Whether a disk of the store is out of service. Extents on it cannot be read.
    #[must_use]
    pub fn lacks_a_disk(&self) -> bool {
        self.lacks_disk
    }

    /// Whether the node is being stopped. Calls end early then.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled() || self.env.tasks.stopping().is_cancelled()
    }

    /// Seals an extent, even if another owner writes to it. Does nothing if it is sealed or
    /// removed.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`].
    pub async fn seal_for_copy(&self, extent: ExtentId) -> Result<(), Error> {
        loop {
            let Some(home) = self.home_unless_gone(extent)? else { return Ok(()) };
            let (sealed, epoch) = {
                let state = home.extent.state();
                (state.slot.sealed, state.slot.epoch)
            };
            if sealed {
                return Ok(());
            }
            match self.seal(extent, epoch).await {
                Ok(_) | Err(Error::NoSuchExtent { .. }) => return Ok(()),
                // A new owner has fenced it meanwhile: seal it at the new epoch.
                Err(Error::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies the live frames of a sealed extent to the disks of another node. If `only` is given,
    /// only frames in these ranges are copied. Copies nothing if the other node already has a copy
    /// with all these frames. Every frame is verified, and the copy is durable under its name. If
    /// the copy fails, an older one stays. Returns the bytes copied; `None` if the extent was
    /// removed. Copying is limited to the pace of compaction. No other call to this node waits for
    /// it, even if the other node's disk is slow.
    ///
    /// # Errors
    /// [`Error::Full`] and [`Error::Poisoned`] concern the other node, all others this one. After
    /// [`Error::Ended`] (this node is stopping) the other node must be opened again before it takes
    /// the next copy.
    pub async fn copy_extent_to(
        self: &Arc<Self>,
        extent: ExtentId,
        to: &Arc<Self>,
        only: Option<Vec<Range<u64>>>,
    ) -> Result<Option<u64>, Error> {
        let only: Option<Ranges> = only.map(|only| only.iter().map(offsets).collect());
        loop {
            let Some(home) = self.home_unless_gone(extent)? else { return Ok(None) };
            let (from, target, only) = (home.clone(), Arc::clone(to), only.clone());
            let pace = self.config.compact_bytes_per_second;
            let (stop, stopping) = (self.stop.clone(), self.env.tasks.stopping());
            // Not cancel safe for the other node: after a cancelled copy it must be opened again,
            // as after a crash.
            let copying = async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => Err(Error::Ended { doing: "copy extent" }),
                    () = stopping.cancelled() => Err(Error::Ended { doing: "copy extent" }),
                    copied = target.take_copy(&from, only.as_ref(), pace) => copied,
                }
            };
            match self.owned("copy extent", copying).await? {
                // A drain moved it to another disk meanwhile.
                None if self.was_moved(&home) => {}
                copied => return Ok(copied),
            }
        }
    }

    /// Makes a copy of another node's extent without the extent's change lock: calls that need the
    /// lock would wait for the disk of the copy. `copy_frames` in `disk/compact.rs` says why this
    /// is safe.
    async fn take_copy(
        &self,
        from: &Home,
        only: Option<&Ranges>,
        pace: u64,
    ) -> Result<Option<u64>, Error> {
        let _one = self.copying.lock().await;
        if from.extent.state().status == Status::Removed {
            return Ok(None);
        }
        let frames = alive(&from.extent, only);
        let old = self.home_unless_gone(from.extent.id)?;
        if old.as_ref().is_some_and(|old| has_all(&old.extent, &from.extent, &frames)) {
            return Ok(Some(0));
        }
        let mut refused = Error::Full;
        for store in self.places_for(from.extent.kind) {
            let frames = Frames { ranges: frames.clone(), pace, read_back: false };
            match from.store.copy_part_to(&from.extent, frames, &store).await {
                Ok(extent) => {
                    let copied = extent.state().live();
                    // On the same disk the copy has replaced the old file.
                    if let Some(old) = old.filter(|old| !Arc::ptr_eq(&old.store, &store)) {
                        old.store.remove(&old.extent).await?;
                    }
                    self.rehome(Home { store, extent });
                    return Ok(Some(copied));
                }
                Err(Error::Full) => {}
                Err(error @ Error::Poisoned { .. }) => refused = error,
                // The extent was removed or moved meanwhile.
                Err(_) if from.extent.state().status == Status::Removed => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }
}

/// The frames of an extent that are not freed and lie in `only`.
fn alive(extent: &Extent, only: Option<&Ranges>) -> Vec<Range<ExtentOffset>> {
    let Some(only) = only else { return extent.alive() };
    let (end, mut dead) = {
        let state = extent.state();
        (state.end, state.dead.clone())
    };
    only.gaps(end).into_iter().for_each(|gap| drop(dead.insert(gap)));
    dead.gaps(end)
}

/// Whether `copy` is sealed at the end of `extent` and has all these frames.
fn has_all(copy: &Extent, extent: &Extent, frames: &[Range<ExtentOffset>]) -> bool {
    let end = extent.state().end;
    let copy = copy.state();
    copy.slot.sealed && copy.end == end && !frames.iter().any(|range| copy.dead.overlaps(range))
}
