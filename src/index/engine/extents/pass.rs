//! What old partitions pass on to those that replace them, as part of the transaction that replaces
//! them: whoever uses an extent is recorded from the moment it may.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use crate::coordinator::{Compare, Coordinator, Op, Revision};
use crate::index::engine::extents::record::{ExtentRecord, Sharers};
use crate::index::engine::extents::reserve::Extents;
use crate::index::engine::shared::Failed;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// A partition to be, and the logs and runs it uses.
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

/// What several heirs use is shared among them, what none uses is left to the first one to remove.
///
/// # Errors
/// [`Failed::Refused`]: the lists of sharers cannot be read.
pub(crate) async fn pass_on(
    coordinator: &dyn Coordinator,
    old: &[&Extents],
    new: &[Heir],
) -> Result<Passed, Failed> {
    let mut passed =
        Passed { records: vec![ExtentRecord::default(); new.len()], ..Passed::default() };
    let mut own = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for extents in old {
        let (record, _) = extents.current();
        own.extend(record.own);
        shared.extend(record.shared);
        passed.when.push(extents.unchanged());
        passed.then.push(Op::Delete(ExtentRecord::key(extents.partition())));
    }
    for extent in own {
        let heirs = heirs(new, extent);
        if let [only] = heirs.as_slice() {
            passed.own(*only, extent);
        } else {
            passed.share(new, extent, (&heirs, None, Sharers::default()));
        }
    }
    let ids: BTreeSet<PartitionId> = old.iter().map(|extents| extents.partition()).collect();
    for (extent, found) in sharers(coordinator, &shared).await? {
        let (at, mut sharers) = found.map_or((None, Sharers::default()), |(s, at)| (Some(at), s));
        let before = sharers.0.len();
        sharers.0.retain(|id| !ids.contains(id));
        let is_used = new.iter().any(|heir| heir.uses.contains(&extent));
        // Released already: whoever else is on the list removes it.
        if is_used || sharers.0.len() < before {
            passed.share(new, extent, (&heirs(new, extent), at, sharers));
        }
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

    /// Puts heirs on the list of an extent's other sharers.
    fn share(
        &mut self,
        new: &[Heir],
        extent: ExtentId,
        (heirs, at, mut sharers): (&[usize], Option<Revision>, Sharers),
    ) {
        let key = Sharers::key(extent);
        for heir in heirs {
            sharers.0.extend(new.get(*heir).map(|heir| heir.id));
            if let Some(record) = self.records.get_mut(*heir) {
                record.shared.insert(extent);
            }
        }
        self.when.push(match at {
            Some(at) => Compare::ModRevision(key.clone(), at),
            None => Compare::Absent(key.clone()),
        });
        self.then.push(Op::Put(key, sharers.encode()));
    }
}

/// The places of those that use an extent; the first place when nobody does.
fn heirs(new: &[Heir], extent: ExtentId) -> Vec<usize> {
    let uses = |(_, heir): &(usize, &Heir)| heir.uses.contains(&extent);
    let found: Vec<usize> = new.iter().enumerate().filter(uses).map(|(at, _)| at).collect();
    if found.is_empty() { vec![0] } else { found }
}

type Listed = Option<(Sharers, Revision)>;

async fn sharers(
    coordinator: &dyn Coordinator,
    extents: &BTreeSet<ExtentId>,
) -> Result<BTreeMap<ExtentId, Listed>, Failed> {
    let refused = |what: String| Failed::Refused(what);
    let reads = extents.iter().map(|extent| async move {
        let found = coordinator.get(&Sharers::key(*extent)).await;
        let Some(found) = found.map_err(|error| refused(error.to_string()))? else {
            return Ok((*extent, None));
        };
        let sharers = Sharers::decode(&found.value).ok_or_else(|| {
            refused(format!("the list of sharers of extent {extent} is malformed"))
        })?;
        Ok::<_, Failed>((*extent, Some((sharers, found.mod_revision))))
    });
    Ok(try_join_all(reads).await?.into_iter().collect())
}
