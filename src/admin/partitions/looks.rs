//! What was shown before: who asks again is told what has changed since, and not all of ten
//! thousand partitions each second.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::index::PartitionStatus;
use crate::types::PartitionId;
use crate::types::Timestamp;

/// Looks remembered: several may look at a time, each a second after its last look.
const KEPT: usize = 6;

/// The latest looks.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<VecDeque<Numbered>>);

/// All partitions, by the number of the look that was told them.
type Numbered = (u64, Arc<Vec<PartitionStatus>>);

/// What one look is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The look's number, never given before, by an earlier process neither.
    pub(super) number: u64,
    /// The look from which the rest is the difference; none when it is everything.
    pub(super) since: Option<u64>,
    /// Partitions that were not there or are different now, in key order.
    pub(super) partitions: Vec<PartitionStatus>,
    /// Partitions that are not there any more.
    pub(super) gone: Vec<PartitionId>,
}

impl Looks {
    /// Remembers what is there `now`, and tells what has changed since the look of number `since`,
    /// or everything when that look is not known.
    pub(super) fn tell(
        &self,
        now: Timestamp,
        all: Vec<PartitionStatus>,
        since: Option<u64>,
    ) -> Told {
        let all = Arc::new(all);
        let (number, before) = self.remember(now, &all, since);
        let Some((since, before)) = before else {
            let partitions = all.as_ref().clone();
            return Told { number, since: None, partitions, gone: Vec::new() };
        };
        let mut old: HashMap<PartitionId, &PartitionStatus> =
            before.iter().map(|partition| (partition.id, partition)).collect();
        let changed = all.iter().filter(|new| old.remove(&new.id) != Some(*new));
        let partitions = changed.cloned().collect();
        let gone = before.iter().map(|old| old.id).filter(|id| old.contains_key(id)).collect();
        Told { number, since: Some(since), partitions, gone }
    }

    fn remember(
        &self,
        now: Timestamp,
        all: &Arc<Vec<PartitionStatus>>,
        since: Option<u64>,
    ) -> (u64, Option<Numbered>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.iter().find(|(number, _)| Some(*number) == since).cloned();
        let micros = u64::try_from(now.since_unix().as_micros()).unwrap_or(u64::MAX);
        let number = kept.back().map_or(micros, |(last, _)| micros.max(last + 1));
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((number, Arc::clone(all)));
        (number, before)
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
        let index = IndexServer::open(vec![world.parts()], world.config).await.unwrap();
        let status = index.status().pop().unwrap();
        index.shutdown().await;
        status
    }

    #[tokio::test]
    async fn of_ten_thousand_partitions_only_those_that_changed_are_told() {
        let one = one().await;
        let partition =
            |id, rows| PartitionStatus { id: PartitionId::new(id), rows, ..one.clone() };
        let mut all: Vec<_> = (1..=10_000).map(|id| partition(id, 0)).collect();
        let looks = Looks::default();
        let first = looks.tell(ZERO, all.clone(), None);
        assert_eq!((first.since, first.partitions.len()), (None, 10_000));
        all[4_000].rows = 7;
        // Partition 9,001 is split.
        all.splice(9_000..9_001, [partition(20_001, 0), partition(20_002, 0)]);
        let told = looks.tell(ZERO, all.clone(), Some(first.number));
        assert_eq!(told.since, Some(first.number));
        let expected = [partition(4_001, 7), partition(20_001, 0), partition(20_002, 0)];
        assert_eq!(told.partitions, expected);
        assert_eq!(told.gone, [PartitionId::new(9_001)]);
        let quiet = looks.tell(ZERO, all.clone(), Some(told.number));
        assert_eq!((quiet.partitions.len(), quiet.gone.len()), (0, 0));

        // What is told since, laid over what was told before, is everything.
        let mut merged: BTreeMap<_, _> = first.partitions.into_iter().map(|p| (p.id, p)).collect();
        merged.retain(|id, _| !told.gone.contains(id));
        merged.extend(told.partitions.into_iter().map(|p| (p.id, p)));
        all.sort_by_key(|partition| partition.id);
        assert_eq!(merged.into_values().collect::<Vec<_>>(), all);
    }

    #[tokio::test]
    async fn who_asks_for_a_forgotten_look_is_told_everything() {
        let all = vec![one().await];
        let looks = Looks::default();
        let later = Timestamp::from_unix(Duration::from_secs(60));
        let first = looks.tell(later, all.clone(), Some(1));
        assert_eq!((first.number, first.since), (60_000_000, None));
        let mut last = first.number;
        for _ in 0..KEPT {
            // The clock was set back: numbers grow all the same.
            let told = looks.tell(ZERO, all.clone(), None);
            assert!(told.number > last);
            last = told.number;
        }
        let told = looks.tell(later, all, Some(first.number));
        assert_eq!((told.since, told.partitions.len()), (None, 1));
    }
}
