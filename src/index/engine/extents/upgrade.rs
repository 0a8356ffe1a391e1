//! Records the extents of stores that were written before there were records. One process had such
//! a store, so the logs and manifests of its partitions say which extents they use.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator::{Compare, Coordinator, Op, TxnReply};
use crate::index::api::Error;
use crate::index::engine::extents::record::{
    ExtentRecord, Loaded, RecordAt, Sharers, UNRECORDED_KEY,
};
use crate::index::engine::failure;
use crate::index::engine::replay::Replay;
use crate::index::map::{PartitionDescriptor, PartitionMap};
use crate::types::ExtentId;
use crate::types::PartitionId;

/// Changes in one transaction. The coordinator takes more.
const AT_ONCE: usize = 64;

/// Records the extents that the partitions of an older store use, before any of them is opened. A
/// partition is of an older store if its record lacks an extent of its log, or if it has a log and
/// no record: an older release served it last, and gave it a new log with its first write. If this
/// is interrupted, the next start does it again: no extent is changed before all are recorded.
///
/// A log or run that no partition names is given to the first partition, which removes it. A
/// partition that cannot be read may use any extent: it shares all of them until it is repaired.
/// Its extents on a missing disk are in no record, so no partition removes them. The key
/// [`UNRECORDED_KEY`] in the coordinator says that there may be such extents. The first start that
/// finds them records them. The same holds for a partition whose record cannot be read: the record
/// is left as it is, and the partition is not opened.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub(crate) async fn upgrade(
    coordinator: &dyn Coordinator,
    capacity: &dyn Capacity,
    map: &PartitionMap,
) -> Result<(), Error> {
    // A cluster never had a release without records.
    if capacity.is_shared() {
        return Ok(());
    }
    // The extents are listed before the records are read: an extent that is in no record was not
    // just created.
    let present = present(capacity).await;
    let Loaded { read: known, unread } = ExtentRecord::load_all(coordinator).await?;
    let Loaded { read: lists, unread: unread_lists } = Sharers::load_all(coordinator).await?;
    for error in unread.values().chain(unread_lists.values()) {
        tracing::error!(
            %error,
            "a record cannot be read; logs and runs that it may name are kept until it is repaired"
        );
    }
    let is_older = |one: &&PartitionDescriptor| {
        let record = known.get(&one.id);
        let has = |extent: &ExtentId| record.is_some_and(|record| record.has(*extent));
        !unread.contains_key(&one.id) && !one.log.iter().all(has)
    };
    let older: BTreeSet<PartitionId> =
        map.partitions().iter().filter(is_older).map(|one| one.id).collect();
    let mark =
        coordinator.get(UNRECORDED_KEY).await.map_err(|error| failure::coordinator(&error))?;
    // The first start of an older release may have been interrupted before it named its first log,
    // which may be on a disk that is missing now.
    let may_have_any = !present.is_empty() || !capacity.is_whole();
    let is_begun = known.is_empty() && unread.is_empty() && may_have_any;
    if older.is_empty() && mark.is_none() && !is_begun {
        return Ok(());
    }
    tracing::info!(partitions = older.len(), "recording the extents of an older store");
    let Usage { users, silent } = users(capacity, map, &present, &unread).await;
    let is_complete = silent.is_empty() && unread_lists.is_empty() && capacity.is_whole();
    if !is_complete && mark.is_none() {
        let put = Op::Put(UNRECORDED_KEY.into(), ExtentRecord::default().encode());
        commit(coordinator, &[], &[put]).await?;
    }
    let ids = map.partitions().iter().map(|one| one.id).collect();
    let found = Found { ids, older, known, unread, lists, unread_lists };
    let New { records, lists } = found.record(users, &present);
    // Lists are written first: an extent that a record calls shared must have a list.
    for puts in lists.chunks(AT_ONCE) {
        commit(coordinator, &[], puts).await?;
    }
    for (id, record) in records {
        add(coordinator, id, record).await?;
    }
    if is_complete && mark.is_some() {
        commit(coordinator, &[], &[Op::Delete(UNRECORDED_KEY.into())]).await?;
    }
    Ok(())
}

/// The partitions, records and lists in the coordinator at the start.
struct Found {
    /// All partitions.
    ids: Vec<PartitionId>,
    /// The partitions of an older store.
    older: BTreeSet<PartitionId>,
    known: BTreeMap<PartitionId, ExtentRecord>,
    unread: BTreeMap<PartitionId, Error>,
    lists: BTreeMap<ExtentId, Sharers>,
    unread_lists: BTreeMap<ExtentId, Error>,
}

/// The records and lists to be written.
struct New {
    /// Extents to be added to the records of partitions.
    records: BTreeMap<PartitionId, ExtentRecord>,
    /// Lists of sharers to be put.
    lists: Vec<Op>,
}

impl Found {
    /// Determines the records and lists from the partitions that may use each extent.
    fn record(&self, mut users: Users, present: &BTreeSet<ExtentId>) -> New {
        for (extent, list) in &self.lists {
            let here = list.0.iter().filter(|name| self.ids.contains(name));
            users.entry(*extent).or_default().extend(here);
        }
        let recorded: BTreeSet<ExtentId> =
            self.known.values().flat_map(ExtentRecord::all).collect();
        let here = self.known.iter().filter(|(id, _)| self.ids.contains(id));
        let owned: BTreeSet<ExtentId> = here.flat_map(|(_, record)| record.own.clone()).collect();
        let first = self.older.first().or(self.ids.first());
        for extent in present.difference(&recorded) {
            users.entry(*extent).or_insert_with(|| first.into_iter().copied().collect());
        }
        // An older partition may have been left without a record by a start that was cut short.
        let records = self.older.iter().map(|id| (*id, ExtentRecord::default())).collect();
        let mut new = New { records, lists: Vec::new() };
        // An extent that a record lists as own cannot have got another user since.
        for (extent, users) in users.into_iter().filter(|(extent, _)| !owned.contains(extent)) {
            self.record_extent(extent, users, !recorded.contains(&extent), &mut new);
        }
        new
    }

    fn record_extent(
        &self,
        extent: ExtentId,
        mut users: BTreeSet<PartitionId>,
        is_new: bool,
        new: &mut New,
    ) {
        let list = self.lists.get(&extent).map(|list| &list.0);
        let has_list = list.is_some() || self.unread_lists.contains_key(&extent);
        let is_shared = users.len() > 1 || has_list;
        let is_to_be = |id: &PartitionId| {
            is_new || self.older.contains(id) || list.is_some_and(|list| list.contains(id))
        };
        for id in users.iter().filter(|id| is_to_be(id) && !self.unread.contains_key(id)) {
            let record = new.records.entry(*id).or_default();
            if is_shared {
                record.shared.insert(extent, [*id].into());
            } else {
                record.own.insert(extent);
            }
        }
        let is_known = !self.unread_lists.contains_key(&extent);
        if is_shared && is_known && (is_new || !users.is_disjoint(&self.older)) {
            users.extend(list.into_iter().flatten());
            new.lists.push(Op::Put(Sharers::key(extent), Sharers(users).encode()));
        }
    }
}

/// All logs and runs that exist.
async fn present(capacity: &dyn Capacity) -> BTreeSet<ExtentId> {
    let is_of_index = |kind| matches!(kind, ExtentKind::Log | ExtentKind::Run);
    let infos = capacity.extents().await;
    infos.iter().filter(|info| is_of_index(info.kind)).map(|info| info.extent).collect()
}

type Users = BTreeMap<ExtentId, BTreeSet<PartitionId>>;

/// The partitions that may use each extent.
struct Usage {
    users: Users,
    /// Partitions whose extents are unknown: they or their records cannot be read.
    silent: BTreeSet<PartitionId>,
}

async fn users(
    capacity: &dyn Capacity,
    map: &PartitionMap,
    present: &BTreeSet<ExtentId>,
    unread: &BTreeMap<PartitionId, Error>,
) -> Usage {
    let (mut users, mut silent) = (Users::new(), BTreeSet::new());
    for partition in map.partitions().iter().filter(|one| !one.log.is_empty()) {
        let used = match unread.get(&partition.id) {
            None => uses(capacity, partition).await,
            Some(error) => Err(error.clone()),
        };
        let used = match used {
            Ok(used) => used,
            Err(error) => {
                tracing::warn!(
                    partition = %partition.id, %error,
                    "the logs and runs that a partition uses cannot be read"
                );
                silent.insert(partition.id);
                present.iter().chain(&partition.log).copied().collect()
            }
        };
        for extent in used {
            users.entry(extent).or_default().insert(partition.id);
        }
    }
    users.values_mut().for_each(|users| users.extend(&silent));
    Usage { users, silent }
}

async fn uses(
    capacity: &dyn Capacity,
    descriptor: &PartitionDescriptor,
) -> Result<BTreeSet<ExtentId>, Error> {
    let replay = Replay::start(capacity, descriptor).await?;
    let runs = replay.manifest().runs.iter().map(|entry| entry.footer.extent);
    Ok(descriptor.log.iter().copied().chain(runs).collect())
}

/// Adds the missing extents to the record of a partition.
async fn add(
    coordinator: &dyn Coordinator,
    id: PartitionId,
    more: ExtentRecord,
) -> Result<(), Error> {
    let key = ExtentRecord::key(id);
    let (mut record, when) = match ExtentRecord::load(coordinator, id).await? {
        Some(RecordAt { record, revision }) => {
            (record, Compare::ModRevision(key.clone(), revision))
        }
        None => (ExtentRecord::default(), Compare::Absent(key.clone())),
    };
    let known: BTreeSet<ExtentId> = record.all().collect();
    record.own.extend(more.own.difference(&known));
    let shared = more.shared.into_iter().filter(|(extent, _)| !known.contains(extent));
    record.shared.extend(shared);
    commit(coordinator, &[when], &[Op::Put(key, record.encode())]).await
}

async fn commit(coordinator: &dyn Coordinator, when: &[Compare], then: &[Op]) -> Result<(), Error> {
    // A repeated transaction does no harm.
    match coordinator.txn(when, then).await.map_err(|error| failure::coordinator(&error))? {
        TxnReply::Committed(_) => Ok(()),
        TxnReply::Rejected(_) => {
            Err(Error::Unavailable("another process changes the records of extents".into()))
        }
    }
}
