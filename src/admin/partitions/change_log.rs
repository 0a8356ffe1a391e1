//! The latest changes of the map by all processes, numbered as this one hears of them.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::index::ChangeEvent;
use crate::index::ChangesOf;
use crate::index::KnownChanges;
use crate::index::LatestChanges;

/// The changes that this process has heard of.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    known: Mutex<KnownChanges>,
    all: LatestChanges,
}

impl ChangeLog {
    /// Which changes it has.
    pub(super) fn known(&self) -> KnownChanges {
        self.lock().clone()
    }

    /// Adds changes that it does not have yet, oldest first.
    pub(super) fn add(&self, changes: Vec<ChangesOf>) {
        // Held until all have their numbers: several requests may have asked for the same changes.
        let mut known = self.lock();
        let mut new = Vec::new();
        for ChangesOf { process, changes } in changes {
            let latest = known.entry(process).or_default();
            for change in changes {
                if change.number > *latest {
                    *latest = change.number;
                    new.push(change);
                }
            }
        }
        new.sort_by_key(|change| change.at);
        new.into_iter().for_each(|change| self.all.note(change));
    }

    /// Those after change `number`, oldest first, and the number of the latest one; 0 if there is
    /// none.
    pub(super) fn after(&self, number: u64) -> (Vec<ChangeEvent>, u64) {
        let changes = self.all.after(number);
        let latest = match changes.last() {
            Some(last) => Some(last.number),
            None => self.all.after(0).last().map(|last| last.number),
        };
        (changes, latest.unwrap_or(0))
    }

    fn lock(&self) -> MutexGuard<'_, KnownChanges> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::index::ChangeKind;
    use crate::rpc::NodeIdentity;
    use crate::types::HostId;
    use crate::types::Incarnation;
    use crate::types::KeyRange;
    use crate::types::NodeId;
    use crate::types::Timestamp;

    fn changes(node: u64, life: u64, numbers: &[(u64, u64)]) -> ChangesOf {
        let process = NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(life) };
        let change = |(number, second): &(u64, u64)| ChangeEvent {
            number: *number,
            at: Timestamp::from_unix(Duration::from_secs(*second)),
            kind: ChangeKind::Split,
            from: Vec::new(),
            to: Vec::new(),
            range: KeyRange::all(),
            host: HostId::of(NodeId::new(node), 0),
            pause: Duration::ZERO,
        };
        ChangesOf { process, changes: numbers.iter().map(change).collect() }
    }

    #[test]
    fn changes_of_all_processes_are_numbered_once_each() {
        let log = ChangeLog::default();
        assert_eq!(log.after(0), (Vec::new(), 0));
        let answers = || vec![changes(1, 1, &[(1, 10), (2, 30)]), changes(2, 1, &[(1, 20)])];
        log.add(answers());
        // Another request has asked for the same ones.
        log.add(answers());
        let of = |(changes, latest): (Vec<ChangeEvent>, u64)| {
            let nodes: Vec<(u64, u64)> =
                changes.iter().map(|one| (one.number, one.host.node().get())).collect();
            (nodes, latest)
        };
        assert_eq!(of(log.after(0)), (vec![(1, 1), (2, 2), (3, 1)], 3));
        // A node was started anew: it counts from 1 again.
        log.add(vec![changes(1, 2, &[(1, 40)])]);
        assert_eq!(of(log.after(3)), (vec![(4, 1)], 4));
        assert_eq!(of(log.after(4)), (Vec::new(), 4));
        assert_eq!(log.known().len(), 3);
    }
}
