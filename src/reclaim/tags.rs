//! Brings the tag index up to changes of tags that no front end brought in: after a crash between a
//! commit and its index entries, and for all removals.

use std::collections::HashMap;

use bytes::Bytes;

use crate::index;
use crate::index::EntryChange;
use crate::index::IndexTag;
use crate::index::ListContainers;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::TagWork;
use crate::index::Target;
use crate::index::Write;
use crate::reclaim::error::Error;
use crate::reclaim::garbage;
use crate::reclaim::partitions::target;
use crate::reclaim::state::Reclaim;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::TagEntryKey;

/// Work rows taken up at once.
const ROWS: usize = 64;
/// Containers listed at once.
const CONTAINERS: usize = 1_000;

/// Names of containers by id, as far as they were looked up in one pass; `None` for those that are
/// gone.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<(AccountId, ContainerId), Option<ContainerName>>);

/// Takes up the work rows of one partition that are due, a bounded part from `position` on, which
/// is left where the next pass goes on. Whether anything was brought in. Work that needs a
/// partition which fails stays, and what is behind it goes on.
pub(super) async fn index(
    reclaim: &Reclaim,
    map: &PartitionMap,
    here: Target,
    (names, position): (&mut Names, &mut Bytes),
) -> Result<bool, Error> {
    let (mut seen, mut done) = (0, 0);
    while seen < reclaim.config.garbage_rows_per_pass {
        reclaim.go_on()?;
        let read = Read::TagWork { blob: None, from: position.clone(), limit: ROWS };
        let ReadReply::TagWork(mut work, next) = reclaim.host.read(here, read).await? else {
            return Err(Error::Answer);
        };
        let now = reclaim.env.clock.now();
        // Younger work is on its way: its front end brings it in.
        work.retain(|work| garbage::is_old(work.time, reclaim.config.grace, now));
        seen += work.len();
        if !work.is_empty() {
            done += bring_in(reclaim, map, here, work, names).await?;
        }
        *position = next.unwrap_or_default();
        if position.is_empty() {
            break;
        }
    }
    Ok(done > 0)
}

/// Brings in what can be, and forgets the rows that are wholly done. How many these are.
async fn bring_in(
    reclaim: &Reclaim,
    map: &PartitionMap,
    here: Target,
    mut work: Vec<TagWork>,
    names: &mut Names,
) -> Result<usize, Error> {
    let mut left = Vec::new();
    for change in TagWork::changes(&work) {
        reclaim.go_on()?;
        if let Err(error) = carry_out(reclaim, map, &change, names).await {
            reclaim.pass_over("tags", error)?;
            left.push(change.entry);
        }
    }
    work.retain(|one| !left.iter().any(|entry| names_entry(one, entry)));
    let rows: Vec<Bytes> = work.into_iter().map(|work| work.row).collect();
    let done = rows.len();
    // Index first: a crash between these two steps brings the same in again, which changes nothing.
    if done > 0 {
        reclaim.host.write(here, Write::ForgetTagWork { rows }).await?;
    }
    Ok(done)
}

/// Whether the entry is among those that this work changes.
fn names_entry(work: &TagWork, entry: &TagEntryKey) -> bool {
    let mut pairs = work.removed.iter().chain(work.added.iter());
    work.blob == entry.blob && pairs.any(|pair| pair == (entry.key.as_str(), entry.value.as_str()))
}

async fn carry_out(
    reclaim: &Reclaim,
    map: &PartitionMap,
    change: &EntryChange,
    names: &mut Names,
) -> Result<(), Error> {
    let container = match container_of(&change.entry.blob) {
        Some(container) if change.present => names.get(reclaim, map, container).await?,
        Some(_) | None => None,
    };
    let entry = change.entry.routing_key();
    let owner = map.owner(entry.as_bytes()).ok_or(index::Error::WrongPartition)?;
    // Of a container that is gone nothing is put.
    let write = Write::IndexTag(IndexTag { entry, time: change.time, container });
    reclaim.host.write(target(owner), write).await?;
    Ok(())
}

fn container_of(blob: &RoutingKey) -> Option<(AccountId, ContainerId)> {
    let number = |range: std::ops::Range<usize>| {
        Some(u64::from_be_bytes(blob.as_bytes().get(range)?.try_into().ok()?))
    };
    Some((AccountId::new(number(0..8)?), ContainerId::new(number(8..16)?)))
}

impl Names {
    /// Rows of containers are found by name, so a name is found by a walk over the account's table:
    /// rare, since front ends bring in what they commit.
    async fn get(
        &mut self,
        reclaim: &Reclaim,
        map: &PartitionMap,
        wanted: (AccountId, ContainerId),
    ) -> Result<Option<ContainerName>, Error> {
        if let Some(known) = self.0.get(&wanted) {
            return Ok(known.clone());
        }
        let mut list = ListContainers {
            account: wanted.0,
            prefix: String::new(),
            from: None,
            limit: CONTAINERS,
        };
        let mut found = None;
        loop {
            reclaim.go_on()?;
            let owner = map.owner(&list.position()).ok_or(index::Error::WrongPartition)?;
            let read = Read::Containers(list.clone());
            let ReadReply::Containers(page) = reclaim.host.read(target(owner), read).await? else {
                return Err(Error::Answer);
            };
            for entry in page.entries {
                if entry.record.id == wanted.1 {
                    found = ContainerName::new(&entry.name).ok();
                }
            }
            list.from = page.next;
            if found.is_some() || list.from.is_none() {
                self.0.insert(wanted, found.clone());
                return Ok(found);
            }
        }
    }
}
