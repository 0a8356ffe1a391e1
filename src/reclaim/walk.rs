//! A walk over the references of all rows, in key order over all partitions.

use std::collections::BTreeSet;

use crate::index;
use crate::index::AskPartition;
use crate::index::ListReferences;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Prove;
use crate::index::ReferencePlace;
use crate::reclaim::error::Error;
use crate::reclaim::live::Live;
use crate::reclaim::partitions::Ownership;
use crate::reclaim::partitions::target;
use crate::reclaim::state::Reclaim;
use crate::types::KeyRange;

/// Stale maps in a row after which a walk fails.
const STALE_MAX: u32 = 8;

/// Locations noted between two yields to other tasks of the thread.
const NOTED_IN_TURN: usize = 4_096;

/// Adds to `live` every location that a row names: all that were committed before the walk began
/// and are still named when it ends. All rows of a blob are read at one instant, so a location that
/// moves between them is not missed ([`ListReferences`]). Locations that `live` leaves to a later
/// walk are not requested.
pub(super) async fn walk(reclaim: &Reclaim, live: &mut Live) -> Result<(), Error> {
    let mut map = reclaim.partitions.map().await?;
    let mut position = ReferencePlace::default();
    let mut walk = Walk { reclaim, live, proven: BTreeSet::new() };
    let mut stale = 0;
    loop {
        reclaim.go_on()?;
        let owners = map.at(&position.key);
        let end = owners.first().ok_or(index::Error::WrongPartition)?.keys.range().high().cloned();
        let list = ListReferences {
            from: position.clone(),
            extents: walk.live.extents(),
            blobs: reclaim.config.audit_blobs,
            locations: reclaim.config.audit_locations,
        };
        // Stripes that were ahead are read again from there. Adding a location twice is harmless.
        let next = match walk.add_pages(owners, &list).await {
            Ok(next) => next,
            Err(Error::Index(index::Error::WrongPartition)) if stale < STALE_MAX => {
                stale += 1;
                map = reclaim.partitions.map().await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        stale = 0;
        position = match (next, end) {
            (Some(next), _) => next,
            (None, Some(end)) => ReferencePlace::at(end.as_bytes().clone()),
            (None, None) => return Ok(()),
        };
        reclaim.env.clock.sleep(reclaim.config.audit_pause).await;
    }
}

struct Walk<'a> {
    reclaim: &'a Reclaim,
    live: &'a mut Live,
    /// Owners that have committed since the walk began.
    proven: BTreeSet<Ownership>,
}

impl Walk<'_> {
    /// Adds a page of each owner of a position, one after the other, since a page is large. Returns
    /// where the walk continues; `None` when no owner has more. After an error, the locations of
    /// the pages that were read stay in `live`.
    async fn add_pages(
        &mut self,
        owners: &[PartitionDescriptor],
        list: &ListReferences,
    ) -> Result<Option<ReferencePlace>, Error> {
        let mut next: Option<ReferencePlace> = None;
        for owner in owners {
            if self.proven.insert(Ownership::of(owner)) {
                prove(self.reclaim, owner).await?;
            }
            let page = self.reclaim.host.ask(target(owner), list.clone()).await?;
            for some in page.locations.chunks(NOTED_IN_TURN) {
                for location in some {
                    self.live.add(location.extent, self.reclaim.capacity.frames_of(location));
                }
                self.live.keep_bound().await;
                tokio::task::yield_now().await;
            }
            next = next.into_iter().chain(page.next).min();
        }
        Ok(next)
    }
}

/// Makes every partition with keys in a range commit a change ([`prove`]).
pub(super) async fn prove_in(
    reclaim: &Reclaim,
    map: &PartitionMap,
    range: &KeyRange,
) -> Result<(), Error> {
    for partition in map.partitions() {
        if range.intersect(partition.keys.range()).is_some() {
            prove(reclaim, partition).await?;
        }
    }
    Ok(())
}

/// Makes a partition commit an empty change. An earlier write that was answered with
/// [`index::Error::Unavailable`] may be in the log and reappear at a restart, although no read
/// shows it. A later commit decides it: either the walk sees the write, or it never happened.
async fn prove(reclaim: &Reclaim, partition: &PartitionDescriptor) -> Result<(), Error> {
    Ok(reclaim.host.tell(target(partition), Prove {}).await?)
}
