//! Whole extents for another node's disks: what a backup is made of.
//!
//! A sealed extent never changes but for what is freed of it, so a copy that ends at the same offset needs no other. What is
//! open is sealed first, as for a drain: its writers go on in new extents.

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::node::{CapacityNode, Home};
use crate::types::ExtentId;

impl CapacityNode {
    /// The id that all disks of the store have in their `format` file.
    #[must_use]
    pub fn store_id(&self) -> Option<u128> {
        self.stores().first().map(|store| store.store_id)
    }

    /// Seals every open extent of a kind.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub async fn seal_all(self: &Arc<Self>, kind: ExtentKind) -> Result<(), Error> {
        for home in self.homes().into_iter().filter(|home| home.extent.kind == kind) {
            let epoch = {
                let state = home.extent.state();
                if state.status == Status::Removed || state.slot.sealed {
                    continue;
                }
                state.slot.epoch
            };
            let Home { store, extent } = home.clone();
            let sealed = self.owned("seal", async move { store.seal(&extent, epoch).await }).await;
            self.forget_removed(&home);
            match sealed {
                // Moved, removed, or taken over by its next writer, who seals it too.
                Ok(_) | Err(Error::NoSuchExtent { .. } | Error::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Copies a sealed extent to the disks of another node, unless that has it already. Every frame is verified. The copy is
    /// durable. Returns the bytes copied; `None` when the extent is gone.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::Unreadable`] of this node; [`Error::Full`], [`Error::Poisoned`] of the other.
    pub async fn copy_into(
        self: &Arc<Self>,
        extent: ExtentId,
        to: &Arc<Self>,
    ) -> Result<Option<u64>, Error> {
        loop {
            let Some(home) = self.homes().into_iter().find(|home| home.extent.id == extent) else {
                return Ok(None);
            };
            let (node, from, target) = (Arc::clone(self), home.clone(), Arc::clone(to));
            let work = async move { node.copy_home(&from, &target).await };
            match self.owned("copy extent", work).await? {
                Some(bytes) => return Ok(Some(bytes)),
                // A drain moved it to another disk meanwhile.
                None if self.was_moved(&home) => {}
                None => return Ok(None),
            }
        }
    }

    async fn copy_home(&self, home: &Home, to: &Arc<Self>) -> Result<Option<u64>, Error> {
        let _turn = home.extent.turn.lock().await;
        if home.extent.state().status == Status::Removed {
            return Ok(None);
        }
        if let Some(there) = to.homes().into_iter().find(|there| there.extent.id == home.extent.id)
        {
            if is_whole_copy(&there.extent, &home.extent) {
                return Ok(Some(0));
            }
            there.store.remove(&there.extent).await?;
            to.forget_removed(&there);
        }
        let mut full = Error::Full;
        for store in to.places_for(home.extent.kind) {
            match home.store.copy_to(&home.extent, &store).await {
                Ok(new) => {
                    let bytes = new.state().live();
                    to.rehome(Home { store, extent: new });
                    return Ok(Some(bytes));
                }
                Err(Error::Full) => {}
                Err(error @ Error::Poisoned { .. }) => full = error,
                Err(error) => return Err(error),
            }
        }
        Err(full)
    }
}

/// Whether `there` has everything that is left of `here`.
fn is_whole_copy(there: &Extent, here: &Extent) -> bool {
    let (end, dead, epoch) = {
        let state = here.state();
        (state.end, state.dead.clone(), state.slot.epoch)
    };
    let copy = there.state();
    let lacks = copy.dead.gaps(end);
    // What is alive here has to be alive there.
    let alive = dead.gaps(end);
    let covered = |range: &std::ops::Range<u64>| {
        lacks.iter().any(|have| have.start <= range.start && range.end <= have.end)
    };
    copy.slot.sealed && copy.end == end && copy.slot.epoch == epoch && alive.iter().all(covered)
}
