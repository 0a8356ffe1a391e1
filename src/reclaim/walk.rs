//! A walk over everything that rows refer to, in key order over all partitions.

use std::collections::BTreeSet;

use crate::index;
use crate::index::ListReferences;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::ReferencePlace;
use crate::index::Write;
use crate::reclaim::error::Error;
use crate::reclaim::live::Live;
use crate::reclaim::partitions::target;
use crate::reclaim::state::Reclaim;
use crate::types::Epoch;
use crate::types::KeyRange;
use crate::types::PartitionId;

/// Stale maps met in a row before a walk is given up.
const STALE_MAX: u32 = 8;

/// Locations noted before other tasks of the thread have their turn.
const NOTED_IN_TURN: usize = 4_096;

/// Notes in `live` every location that a row names, including all that were committed before the
/// walk began and are still named when it ends. Each location is looked for in all rows of a blob
/// at one instant, so what moves between its rows is not missed ([`ListReferences`]). What `live`
/// leaves to a later walk is not asked for.
pub(super) async fn walk(reclaim: &Reclaim, live: &mut Live) -> Result<(), Error> {
    let mut map = reclaim.partitions.map().await?;
    let mut position = ReferencePlace::default();
    let mut proven = BTreeSet::new();
    let mut stale = 0;
    loop {
        reclaim.go_on()?;
        let owners = map.at(&position.key);
        let end = owners.first().ok_or(index::Error::WrongPartition)?.keys.range().high().cloned();
        let list = ListReferences {
            from: position.clone(),
            extents: live.extents(),
            blobs: reclaim.config.audit_blobs,
            locations: reclaim.config.audit_locations,
        };
        // Stripes that were ahead are seen again from there: twice is no harm.
        let next = match note_pages(reclaim, owners, &list, (&mut proven, &mut *live)).await {
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

/// Notes a page of each owner of a position, one after the other: a page is large. Returns where
/// the walk goes on, unless no owner has more. What a page of a failed try has noted is live all
/// the same.
async fn note_pages(
    reclaim: &Reclaim,
    owners: &[PartitionDescriptor],
    list: &ListReferences,
    (proven, live): (&mut BTreeSet<(PartitionId, Epoch)>, &mut Live),
) -> Result<Option<ReferencePlace>, Error> {
    let mut next: Option<ReferencePlace> = None;
    for owner in owners {
        if proven.insert((owner.id, owner.epoch)) {
            prove(reclaim, owner).await?;
        }
        let read = Read::References(list.clone());
        let ReadReply::References(page) = reclaim.host.read(target(owner), read).await? else {
            return Err(Error::Answer);
        };
        for some in page.locations.chunks(NOTED_IN_TURN) {
            for location in some {
                live.add(location.extent, reclaim.capacity.frames_of(location));
            }
            live.keep_bound().await;
            tokio::task::yield_now().await;
        }
        next = next.into_iter().chain(page.next).min();
    }
    Ok(next)
}

/// Has every partition with keys in a range commit something.
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

/// Has a partition commit a change that changes nothing. A write of before that was answered
/// [`index::Error::Unavailable`] may be in the log and come back at a restart, though no read shows
/// it; once the partition has committed something later, it is decided: either the walk sees it, or
/// it never was.
async fn prove(reclaim: &Reclaim, partition: &PartitionDescriptor) -> Result<(), Error> {
    reclaim.host.write(target(partition), Write::Prove).await?;
    Ok(())
}
