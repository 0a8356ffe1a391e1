//! Stores written before extents were recorded: one process had them, so what its partitions use
//! tells who uses what.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator::{Compare, Coordinator, Op};
use crate::index::api::Error;
use crate::index::engine::extents::record::{ExtentRecord, Sharers};
use crate::index::engine::failure;
use crate::index::engine::replay::Replay;
use crate::index::map::{PartitionDescriptor, PartitionMap};
use crate::types::ExtentId;
use crate::types::PartitionId;

/// Changes in one transaction, below what the coordinator takes.
const AT_ONCE: usize = 64;

/// Records what the partitions of an older store use, before any of them is opened. A partition
/// with a log and without a record is of an older store. Cut short, it is done again at the next
/// start: nothing changes before all is recorded.
///
/// A log or run that nobody names is left to the first of them, which removes it. A partition that
/// cannot be read may use anything: it shares all extents until it is repaired.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub(crate) async fn upgrade(
    coordinator: &dyn Coordinator,
    capacity: &dyn Capacity,
    map: &PartitionMap,
) -> Result<(), Error> {
    let known = ExtentRecord::load_all(coordinator).await?;
    let is_older = |one: &&PartitionDescriptor| !one.log.is_empty() && !known.contains_key(&one.id);
    let older: Vec<PartitionId> =
        map.partitions().iter().filter(is_older).map(|one| one.id).collect();
    let Some(first) = older.first() else { return Ok(()) };
    tracing::info!(partitions = older.len(), "recording the extents of an older store");

    let present: BTreeSet<ExtentId> = capacity
        .extents()
        .await
        .iter()
        .filter(|info| matches!(info.kind, ExtentKind::Log | ExtentKind::Run))
        .map(|info| info.extent)
        .collect();
    let mut users: BTreeMap<ExtentId, BTreeSet<PartitionId>> = BTreeMap::new();
    for partition in map.partitions() {
        let used = match uses(capacity, partition).await {
            Ok(used) => used,
            Err(error) => {
                tracing::warn!(partition = %partition.id, %error, "what it uses cannot be read");
                present.iter().chain(&partition.log).copied().collect()
            }
        };
        for extent in used {
            users.entry(extent).or_default().insert(partition.id);
        }
    }
    let recorded: BTreeSet<ExtentId> = known.values().flat_map(ExtentRecord::all).collect();
    for extent in present.difference(&recorded) {
        users.entry(*extent).or_insert_with(|| [*first].into());
    }

    let mut records: BTreeMap<PartitionId, ExtentRecord> = BTreeMap::new();
    let mut lists = Vec::new();
    for (extent, users) in users {
        let is_shared = users.len() > 1;
        for user in &users {
            let record = records.entry(*user).or_default();
            if is_shared { &mut record.shared } else { &mut record.own }.insert(extent);
        }
        if is_shared {
            lists.push(Op::Put(Sharers::key(extent), Sharers(users).encode()));
        }
    }
    // The lists first: a record that calls an extent shared is not without them.
    for lists in lists.chunks(AT_ONCE) {
        commit(coordinator, &[], lists).await?;
    }
    for id in older {
        let key = ExtentRecord::key(id);
        let record = records.remove(&id).unwrap_or_default();
        commit(coordinator, &[Compare::Absent(key.clone())], &[Op::Put(key, record.encode())])
            .await?;
    }
    Ok(())
}

async fn uses(
    capacity: &dyn Capacity,
    descriptor: &PartitionDescriptor,
) -> Result<BTreeSet<ExtentId>, Error> {
    let replay = Replay::start(capacity, descriptor).await?;
    let runs = replay.manifest().runs.iter().map(|entry| entry.footer.extent);
    Ok(descriptor.log.iter().copied().chain(runs).collect())
}

async fn commit(coordinator: &dyn Coordinator, when: &[Compare], then: &[Op]) -> Result<(), Error> {
    // Written twice is no harm, and one that is there already is the same.
    coordinator.txn(when, then).await.map_err(|error| failure::coordinator(&error))?;
    Ok(())
}
