//! A walk over everything that rows refer to, in key order over all partitions.

use bytes::Bytes;

use crate::index;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::reclaim::Error;
use crate::reclaim::partitions::target;
use crate::reclaim::service::Reclaim;
use crate::types::Location;

/// Stale maps met in a row before a walk is given up.
const STALE_MAX: u32 = 8;

/// Shows `see` every location that a row names, including all that were committed before the walk began and are still
/// named when it ends. Each blob is seen as of one instant, so what moves between its rows is not missed.
pub(super) async fn walk(reclaim: &Reclaim, mut see: impl FnMut(&Location)) -> Result<(), Error> {
    let mut map = reclaim.partitions.map().await?;
    let mut position = Bytes::new();
    let mut proven = None;
    let mut stale = 0;
    loop {
        reclaim.go_on()?;
        let partition = map.owner(&position).ok_or(index::Error::WrongPartition)?;
        let (references, high) = match page(reclaim, partition, &position, &mut proven).await {
            Ok(references) => (references, partition.range.high().cloned()),
            Err(Error::Index(index::Error::WrongPartition)) if stale < STALE_MAX => {
                stale += 1;
                map = reclaim.partitions.map().await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        stale = 0;
        references.locations.iter().for_each(&mut see);
        position = match (references.next, high) {
            (Some(next), _) => next,
            (None, Some(high)) => high.as_bytes().clone(),
            (None, None) => return Ok(()),
        };
        reclaim.env.clock.sleep(reclaim.config.audit_pause).await;
    }
}

async fn page(
    reclaim: &Reclaim,
    partition: &PartitionDescriptor,
    position: &Bytes,
    proven: &mut Option<Target>,
) -> Result<index::References, Error> {
    let target = target(partition);
    if *proven != Some(target) {
        prove(reclaim, partition).await?;
        *proven = Some(target);
    }
    let read = Read::References { from: position.clone(), limit: reclaim.config.audit_blobs };
    let ReadReply::References(references) = reclaim.host.read(target, read).await? else {
        return Err(Error::Answer);
    };
    Ok(references)
}

/// Has every partition commit something.
pub(super) async fn prove_all(reclaim: &Reclaim, map: &PartitionMap) -> Result<(), Error> {
    for partition in map.partitions() {
        prove(reclaim, partition).await?;
    }
    Ok(())
}

/// Has a partition commit a change that changes nothing. A write of before that was answered
/// [`index::Error::Unavailable`] may be in the log and come back at a restart, though no read shows it; once the
/// partition has committed something later, it is decided: either the walk sees it, or it never was.
async fn prove(reclaim: &Reclaim, partition: &PartitionDescriptor) -> Result<(), Error> {
    let mut key = partition.range.low().as_bytes().to_vec();
    key.push(0);
    let nothing = Write::ForgetGarbage { keys: vec![key.into()] };
    reclaim.host.write(target(partition), nothing).await?;
    Ok(())
}
