//! Passes the extents of old partitions on to the partitions that replace them, in the transaction
//! that replaces them. So every partition that may use an extent is recorded from that moment on.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use crate::coordinator::{Compare, Coordinator, Op, Revision};
use crate::index::engine::extents::record::{ExtentRecord, Sharers};
use crate::index::engine::extents::reserve::Extents;
use crate::index::engine::failed::Failed;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// A partition that a change makes, and the logs and runs that it uses.
#[derive(Clone, Debug)]
pub(crate) struct Heir {
    pub(crate) id: PartitionId,
    pub(crate) uses: BTreeSet<ExtentId>,
}

/// The part of the transaction that concerns extents.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) when: Vec<Compare>,
    pub(crate) then: Vec<Op>,
    /// Of the new partitions, in order.
    pub(crate) records: Vec<ExtentRecord>,
}

/// Gives each extent of the old partitions to the heirs that use it. If several heirs use it, they
/// are put on its list of sharers. A single heir takes over the names that the old partitions have
/// on the list, so the list does not change. An extent that no heir uses goes to the first heir in
/// the same way, which releases it. ADR 0022 has an example.
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`]: the lists of sharers cannot be read.
pub(crate) async fn pass_on(
    coordinator: &dyn Coordinator,
    old: &[&Extents],
    new: &[Heir],
) -> Result<Passed, Failed> {
    let mut passed =
        Passed { records: vec![ExtentRecord::default(); new.len()], ..Passed::default() };
    let mut all = ExtentRecord::default();
    for extents in old {
        let record = extents.current();
        all.own.extend(record.own);
        for (extent, names) in record.shared {
            all.shared.entry(extent).or_default().extend(names);
        }
        passed.when.push(extents.unchanged());
        passed.then.push(Op::Delete(ExtentRecord::key(extents.partition())));
    }
    for extent in all.own {
        match heirs(new, extent).as_slice() {
            [only] => passed.own(*only, extent),
            several => passed.share(new, extent, several, Listed::default()),
        }
    }
    let mut listed = BTreeMap::new();
    for (extent, names) in all.shared {
        match heirs(new, extent).as_slice() {
            [only] => passed.keep_shared(*only, extent, names),
            _ => drop(listed.insert(extent, names)),
        }
    }
    for (extent, found) in sharers(coordinator, listed.keys()).await? {
        let mut list = found;
        let names = listed.remove(&extent).unwrap_or_default();
        list.sharers.0.retain(|name| !names.contains(name));
        passed.share(new, extent, &heirs(new, extent), list);
    }
    let records = new.iter().zip(&passed.records);
    let puts = records.map(|(heir, record)| Op::Put(ExtentRecord::key(heir.id), record.encode()));
    passed.then.extend(puts);
    Ok(passed)
}

impl Passed {
    fn own(&mut self, heir: usize, extent: ExtentId) {
        if let Some(record) = self.records.get_mut(heir) {
            record.own.insert(extent);
        }
    }

    fn keep_shared(&mut self, heir: usize, extent: ExtentId, names: BTreeSet<PartitionId>) {
        if let Some(record) = self.records.get_mut(heir) {
            record.shared.insert(extent, names);
        }
    }

    /// Puts heirs on the list of an extent's other sharers.
    fn share(&mut self, new: &[Heir], extent: ExtentId, heirs: &[usize], list: Listed) {
        let Listed { mut sharers, at } = list;
        let key = Sharers::key(extent);
        for heir in heirs {
            let name = new.get(*heir).map(|heir| heir.id);
            sharers.0.extend(name);
            self.keep_shared(*heir, extent, name.into_iter().collect());
        }
        self.when.push(match at {
            Some(at) => Compare::ModRevision(key.clone(), at),
            None => Compare::Absent(key.clone()),
        });
        self.then.push(Op::Put(key, sharers.encode()));
    }
}

/// The indexes of the heirs that use an extent; the first index if none does.
fn heirs(new: &[Heir], extent: ExtentId) -> Vec<usize> {
    let uses = |(_, heir): &(usize, &Heir)| heir.uses.contains(&extent);
    let found: Vec<usize> = new.iter().enumerate().filter(uses).map(|(at, _)| at).collect();
    if found.is_empty() { vec![0] } else { found }
}

/// The list of an extent's sharers in the coordinator.
#[derive(Default)]
struct Listed {
    sharers: Sharers,
    /// The last change of the list; `None` while there is no list.
    at: Option<Revision>,
}

async fn sharers(
    coordinator: &dyn Coordinator,
    extents: impl Iterator<Item = &ExtentId>,
) -> Result<BTreeMap<ExtentId, Listed>, Failed> {
    let reads = extents.map(|extent| async move {
        let found = coordinator.get(&Sharers::key(*extent)).await;
        let Some(found) = found.map_err(|error| Failed::refused(&error))? else {
            return Ok((*extent, Listed::default()));
        };
        let sharers = Sharers::decode(&found.value)
            .map_err(|unread| Failed::unread(unread.at(&Sharers::key(*extent))))?;
        let at = Some(found.mod_revision);
        Ok::<_, Failed>((*extent, Listed { sharers, at }))
    });
    Ok(try_join_all(reads).await?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::engine::extents::record::RecordAt;
    use crate::index::engine::testing::World;

    fn ids(ids: impl IntoIterator<Item = u64>) -> BTreeSet<ExtentId> {
        ids.into_iter().map(ExtentId::new).collect()
    }

    fn names<const N: usize>(ids: [u64; N]) -> BTreeSet<PartitionId> {
        ids.map(PartitionId::new).into()
    }

    fn old(id: u64, shared: impl IntoIterator<Item = u64>) -> Arc<Extents> {
        let shared = shared.into_iter().map(|extent| (ExtentId::new(extent), names([id])));
        let record = ExtentRecord { own: ids([id * 1_000]), shared: shared.collect() };
        let at = RecordAt { record, revision: Revision(1) };
        Extents::new(PartitionId::new(id), Some(at), Vec::new())
    }

    fn heir(id: u64, uses: impl IntoIterator<Item = u64>) -> Heir {
        Heir { id: PartitionId::new(id), uses: ids(uses) }
    }

    /// The transaction stays small however many extents are still to be released.
    #[tokio::test]
    async fn extents_of_one_new_partition_keep_their_names_and_no_list_changes() {
        let world = World::empty();
        let coordinator = world.deps().coordinator;
        let (one, two) = (old(1, 0..300), old(2, 100..400));
        let new = [heir(3, (0..10).chain(150..160))];
        let passed = pass_on(coordinator.as_ref(), &[&one, &two], &new).await.unwrap();
        assert_eq!((passed.when.len(), passed.then.len()), (2, 3));
        let record = &passed.records[0];
        assert_eq!(record.own, ids([1_000, 2_000]));
        assert_eq!(record.shared.len(), 400);
        assert_eq!(record.shared[&ExtentId::new(50)], names([1]));
        assert_eq!(record.shared[&ExtentId::new(150)], names([1, 2]));
        assert_eq!(record.shared[&ExtentId::new(350)], names([2]));
    }

    #[tokio::test]
    async fn extents_of_several_new_partitions_are_listed_with_those_of_others() {
        let world = World::empty();
        let coordinator = world.deps().coordinator;
        let put = Op::Put(Sharers::key(ExtentId::new(7)), Sharers(names([1, 9])).encode());
        coordinator.txn(&[], &[put]).await.unwrap();
        let one = old(1, [7, 8, 200]);
        let new = [heir(2, [7, 1_000]), heir(3, [7, 8, 1_000])];
        let passed = pass_on(coordinator.as_ref(), &[&one], &new).await.unwrap();
        let lists = [(7, names([2, 3, 9])), (1_000, names([2, 3]))];
        for (extent, list) in lists {
            let list = Op::Put(Sharers::key(ExtentId::new(extent)), Sharers(list).encode());
            assert!(passed.then.contains(&list), "{extent}: {:?}", passed.then);
        }
        assert_eq!((passed.when.len(), passed.then.len()), (3, 5));
        let shared = |at: usize| passed.records[at].shared.clone();
        let id = ExtentId::new;
        let [first, second] = [names([2]), names([3])];
        assert_eq!(
            shared(0),
            [(7, &first), (200, &names([1])), (1_000, &first)]
                .map(|(extent, names)| (id(extent), names.clone()))
                .into()
        );
        assert_eq!(
            shared(1),
            [(7, &second), (8, &names([1])), (1_000, &second)]
                .map(|(extent, names)| (id(extent), names.clone()))
                .into()
        );
    }
}
