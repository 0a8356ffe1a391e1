//! Creates the extents of logs and runs, under recorded ids.

use crate::capacity;
use crate::capacity::ExtentKind;
use crate::index::engine::context::{HostContext, Unfinished};
use crate::index::engine::extents::ids;
use crate::index::engine::extents::pins::PinnedExtent;
use crate::index::engine::extents::reserve::Owner;
use crate::index::engine::failed::{Failed, NO_EXTENT_ID};

/// The most ids under which no extent could be created, before a creation fails.
const REFUSED_MAX: usize = 64;

impl HostContext {
    /// Creates an extent under an id that the record of the partition contains. After an error the
    /// extent may exist, but nothing uses it.
    pub(crate) async fn create(
        &self,
        kind: ExtentKind,
        owner: Owner<'_>,
    ) -> Result<PinnedExtent, Failed> {
        let Owner { extents, epoch } = owner;
        let none = || {
            if extents.is_closed() {
                return Failed::Refused("the partition has stopped".into());
            }
            Failed::Busy(NO_EXTENT_ID)
        };
        let mut refused = 0;
        loop {
            let pinned = match extents.take(&self.pins) {
                Some(pinned) => pinned,
                // The groups of all recorded ids refused. New ids are of other groups.
                None if (1..=REFUSED_MAX).contains(&refused) && !extents.is_closed() => {
                    ids::reserve_now(self, extents, 1).await?;
                    continue;
                }
                None => return Err(none()),
            };
            let extent = pinned.extent;
            // The caller may be cancelled before the answer. The removal waits until the creation
            // has ended.
            let unfinished = Unfinished::new(self, extents, extent);
            let created = self.deps.capacity.create(extent, kind, epoch).await;
            unfinished.finish();
            let Err(error) = created else { return Ok(pinned) };
            match &error {
                capacity::Error::Full => extents.give_back(extent),
                // The id was issued twice: the extent belongs to another owner.
                capacity::Error::NoSuchExtent { .. } => extents.set_gone(extent),
                // In a cluster: its group is closed, or a node of it is passed over. The next id
                // may be of another group.
                capacity::Error::Sealed { .. } | capacity::Error::NoAnswer { .. } => {
                    self.release(extents, extent);
                    refused += 1;
                    continue;
                }
                capacity::Error::Fenced { .. }
                | capacity::Error::WrongOffset { .. }
                | capacity::Error::Corrupt { .. }
                | capacity::Error::Poisoned { .. }
                | capacity::Error::Ended { .. }
                | capacity::Error::Unreadable { .. }
                | capacity::Error::OutOfService { .. } => self.release(extents, extent),
            }
            return Err(Failed::from(error).before_it_counts());
        }
    }
}
