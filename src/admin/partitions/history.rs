//! The answers of the last seconds. A client that asks again gets only the partitions that changed
//! since its last answer, instead of ten thousand partitions each second.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::index::PartitionStatus;
use crate::types::PartitionId;
use crate::types::Timestamp;

/// Answers remembered. Several clients may ask at a time, each a second after its last answer.
const REMEMBERED_MAX: usize = 6;

/// The latest answers.
#[derive(Debug, Default)]
pub(super) struct MapHistory(Mutex<VecDeque<Snapshot>>);

/// All partitions at an instant.
#[derive(Clone, Debug)]
struct Snapshot {
    number: u64,
    partitions: Arc<Vec<PartitionStatus>>,
}

/// The difference between two snapshots.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MapDelta {
    /// The number of the later snapshot. Numbers are unique, also across restarts.
    pub(super) number: u64,
    /// The number of the earlier snapshot; `None` when `partitions` has all.
    pub(super) since: Option<u64>,
    /// Partitions that are new or have changed, in key order.
    pub(super) partitions: Vec<PartitionStatus>,
    /// Partitions that do not exist any more.
    pub(super) gone: Vec<PartitionId>,
}

impl MapHistory {
    /// Remembers the partitions of `now`. Returns what has changed since snapshot `since`, or all
    /// partitions when that snapshot is not remembered.
    pub(super) fn delta(
        &self,
        now: Timestamp,
        all: Vec<PartitionStatus>,
        since: Option<u64>,
    ) -> MapDelta {
        let all = Arc::new(all);
        let earlier = since.and_then(|since| self.find(since));
        let number = self.remember(now, &all);
        let Some(Snapshot { number: since, partitions: before }) = earlier else {
            let partitions = all.as_ref().clone();
            return MapDelta { number, since: None, partitions, gone: Vec::new() };
        };
        let mut old: HashMap<PartitionId, &PartitionStatus> =
            before.iter().map(|partition| (partition.id, partition)).collect();
        let changed = all.iter().filter(|new| old.remove(&new.id) != Some(*new));
        let partitions = changed.cloned().collect();
        let gone = before.iter().map(|old| old.id).filter(|id| old.contains_key(id)).collect();
        MapDelta { number, since: Some(since), partitions, gone }
    }

    fn find(&self, number: u64) -> Option<Snapshot> {
        let snapshots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.iter().find(|snapshot| snapshot.number == number).cloned()
    }

    /// Remembers the partitions, and returns the number of the snapshot.
    fn remember(&self, now: Timestamp, all: &Arc<Vec<PartitionStatus>>) -> u64 {
        let mut snapshots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let micros = u64::try_from(now.since_unix().as_micros()).unwrap_or(u64::MAX);
        let number = snapshots.back().map_or(micros, |last| micros.max(last.number + 1));
        if snapshots.len() == REMEMBERED_MAX {
            snapshots.pop_front();
        }
        snapshots.push_back(Snapshot { number, partitions: Arc::clone(all) });
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::index::IndexServer;
    use crate::index::engine::testing::World;

    const ZERO: Timestamp = Timestamp::ZERO;

    async fn one() -> PartitionStatus {
        let world = World::empty();
        let index = IndexServer::open(vec![world.deps()], world.config).await.unwrap();
        let status = index.status().pop().unwrap();
        index.shutdown().await;
        status
    }

    #[tokio::test]
    async fn of_ten_thousand_partitions_only_those_that_changed_are_in_the_delta() {
        let one = one().await;
        let partition =
            |id, rows| PartitionStatus { id: PartitionId::new(id), rows, ..one.clone() };
        let mut all: Vec<_> = (1..=10_000).map(|id| partition(id, 0)).collect();
        let history = MapHistory::default();
        let first = history.delta(ZERO, all.clone(), None);
        assert_eq!((first.since, first.partitions.len()), (None, 10_000));
        all[4_000].rows = 7;
        // Partition 9,001 is split.
        all.splice(9_000..9_001, [partition(20_001, 0), partition(20_002, 0)]);
        let delta = history.delta(ZERO, all.clone(), Some(first.number));
        assert_eq!(delta.since, Some(first.number));
        let expected = [partition(4_001, 7), partition(20_001, 0), partition(20_002, 0)];
        assert_eq!(delta.partitions, expected);
        assert_eq!(delta.gone, [PartitionId::new(9_001)]);
        let quiet = history.delta(ZERO, all.clone(), Some(delta.number));
        assert_eq!((quiet.partitions.len(), quiet.gone.len()), (0, 0));

        // The delta laid over the earlier answer gives all partitions.
        let mut merged: BTreeMap<_, _> = first.partitions.into_iter().map(|p| (p.id, p)).collect();
        merged.retain(|id, _| !delta.gone.contains(id));
        merged.extend(delta.partitions.into_iter().map(|p| (p.id, p)));
        all.sort_by_key(|partition| partition.id);
        assert_eq!(merged.into_values().collect::<Vec<_>>(), all);
    }

    #[tokio::test]
    async fn delta_to_a_forgotten_snapshot_has_all_partitions() {
        let all = vec![one().await];
        let history = MapHistory::default();
        let later = Timestamp::from_unix(Duration::from_secs(60));
        let first = history.delta(later, all.clone(), Some(1));
        assert_eq!((first.number, first.since), (60_000_000, None));
        let mut last = first.number;
        for _ in 0..REMEMBERED_MAX {
            // The clock was set back: numbers grow all the same.
            let delta = history.delta(ZERO, all.clone(), None);
            assert!(delta.number > last);
            last = delta.number;
        }
        let delta = history.delta(later, all, Some(first.number));
        assert_eq!((delta.since, delta.partitions.len()), (None, 1));
    }
}
