//! Finds keys that cut a partition, or any range of keys, into even parts.

use std::sync::Arc;

use bytes::Bytes;

use crate::index::api::ChangeError;
use crate::index::api::Error;
use crate::index::engine::Partition;
use crate::index::server::IndexServer;
use crate::index::server::change::is_inside_a_table;
use crate::index::server::host::Host;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// The fewest recent requests for each part that show where the load is.
const SAMPLES_PER_PART: usize = 16;
/// If memory has fewer keys for each part than this, rows are counted one by one.
const KEYS_PER_PART: usize = 8;
/// The most rows that are counted one by one. More rows than this have enough keys in memory.
const ROWS_MAX: usize = 20_000;

impl IndexServer {
    /// Keys that cut a partition into `parts` with equal shares of the requests of the last
    /// seconds. If these were too few, the parts have equal shares of its rows. There are fewer
    /// keys, or none, if the partition has too few places for a cut.
    ///
    /// # Errors
    /// [`ChangeError::NoSuchPartition`], [`ChangeError::Refused`].
    pub async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let (host, opened) = self.opened(partition)?;
        let range = opened.core.range();
        let recent = opened.core.meter.recent(host.context.deps.env.clock.monotonic());
        let recent: Vec<_> = recent
            .into_iter()
            .filter_map(border)
            .map(|key| (RoutingKey::from_bytes(key), 1))
            .collect();
        if recent.len() >= SAMPLES_PER_PART.saturating_mul(parts) {
            let cuts = even(recent, parts, range);
            if cuts.len() + 1 == parts {
                return Ok(cuts);
            }
        }
        row_cuts_of(&opened, parts).await
    }

    /// Keys that cut a partition into `parts` with about equal numbers of rows, whatever its
    /// requests. There are fewer keys, or none, if the partition has too few places for a cut.
    ///
    /// # Errors
    /// As [`Self::even_cuts`].
    pub async fn row_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let (_, opened) = self.opened(partition)?;
        row_cuts_of(&opened, parts).await
    }

    fn opened(&self, partition: PartitionId) -> Result<(&Host, Arc<Partition>), ChangeError> {
        let host = self.host_of(partition).ok_or(ChangeError::NoSuchPartition)?;
        let opened = host.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
        Ok((host, opened))
    }

    /// Keys of the rows of `range` that are here, ascending, and how many rows begin at each. There
    /// are enough of them to cut the range into `parts`, if there are so many rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let mut opened: Vec<_> = self.hosts.iter().flat_map(|host| host.opened.all()).collect();
        opened.sort_by(|a, b| a.core.range().low().cmp(b.core.range().low()));
        let mut spread = Vec::new();
        for partition in opened {
            let keys = KEYS_PER_PART.saturating_mul(parts);
            spread.extend(partition.row_distribution(range, keys, ROWS_MAX).await?);
        }
        Ok(spread)
    }
}

async fn row_cuts_of(opened: &Partition, parts: usize) -> Result<Vec<RoutingKey>, ChangeError> {
    let range = opened.core.range();
    let spread =
        opened.row_distribution(range, KEYS_PER_PART.saturating_mul(parts), ROWS_MAX).await?;
    Ok(even(spread, parts, range))
}

/// The position before the blob of a request's key; `None` where no cut is permitted. A key without
/// a routing key is itself a position between blobs.
pub(super) fn border(key: Bytes) -> Option<Bytes> {
    let key = RoutingKey::of_row(&key).unwrap_or_else(|| RoutingKey::from_bytes(key));
    (!is_inside_a_table(&key)).then(|| key.as_bytes().clone())
}

/// The keys inside `range` at which parts of equal weight begin, and at which a cut is permitted.
/// `spread` are keys, ascending, and the weight that begins at each.
#[must_use]
pub fn even(spread: Vec<(RoutingKey, u64)>, parts: usize, range: &KeyRange) -> Vec<RoutingKey> {
    let wide = |count: usize| u128::try_from(count).unwrap_or(u128::MAX);
    let total: u128 = spread.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let (mut before, mut part) = (0_u128, 1);
    let mut cuts: Vec<RoutingKey> = Vec::new();
    for (key, weight) in spread {
        let may = range.contains(key.as_bytes()) && key != *range.low() && !is_inside_a_table(&key);
        if may && part < parts && before * wide(parts) >= total * wide(part) {
            while part < parts && before * wide(parts) >= total * wide(part) {
                part += 1;
            }
            if cuts.last() != Some(&key) {
                cuts.push(key);
            }
        }
        before += u128::from(weight);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::index::api::IndexHost;
    use crate::index::api::Target;
    use crate::index::api::Write;
    use crate::index::engine::Dependencies;
    use crate::index::engine::testing::World;
    use crate::index::map::PartitionMap;
    use crate::types::AccountId;
    use crate::types::AccountName;

    fn key(number: u64) -> RoutingKey {
        RoutingKey::account(&AccountName::new(&format!("acc{number:05}")).unwrap())
    }

    async fn write(server: &IndexServer, deps: &Dependencies, numbers: std::ops::Range<u64>) {
        let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
        for number in numbers {
            let name = AccountName::new(&format!("acc{number:05}")).unwrap();
            let target = Target::of(map.owner(key(number).as_bytes()).unwrap());
            let write = Write::CreateAccount { name, id: AccountId::new(number), anonymous: false };
            server.write(target, write).await.unwrap();
        }
    }

    #[test]
    fn parts_have_equal_weight_and_no_border_where_none_may_be() {
        let spread =
            |weights: &[u64]| (0..).map(key).zip(weights.iter().copied()).collect::<Vec<_>>();
        let all = KeyRange::all();
        assert_eq!(even(spread(&[1; 100]), 4, &all), [key(25), key(50), key(75)]);
        assert_eq!(even(spread(&[90, 1, 1, 1, 1, 1, 1, 1, 1, 1]), 3, &all), [key(1)]);
        assert_eq!(even(spread(&[1, 1]), 5, &all), [key(1)]);
        assert!(even(spread(&[7]), 2, &all).is_empty());
        assert!(even(Vec::new(), 2, &all).is_empty());
        let table = |n: u64| {
            let name = crate::types::ContainerName::new(&format!("con{n}")).unwrap();
            (RoutingKey::container(AccountId::new(1), &name), 1)
        };
        assert!(even((0..9).map(table).collect(), 2, &all).is_empty());
    }

    #[tokio::test]
    async fn rows_are_cut_evenly_wherever_they_are() {
        let world = World::empty();
        let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
        let server = Arc::new(IndexServer::open(vec![deps.clone()], world.config).await.unwrap());
        let only = server.status()[0].id;
        let near = |cuts: &[RoutingKey], wanted: &[u64]| {
            assert_eq!(cuts.len(), wanted.len());
            for (cut, wanted) in cuts.iter().zip(wanted) {
                let around = key(wanted.saturating_sub(30))..=key(wanted + 30);
                assert!(around.contains(cut), "{cut:?} is not about {wanted}");
            }
        };
        write(&server, &deps, 0..3).await;
        assert_eq!(server.even_cuts(only, 3).await.unwrap(), [key(1), key(2)], "each row counts");
        assert_eq!(server.even_cuts(only, 9).await.unwrap().len(), 2, "no more than there are");
        write(&server, &deps, 3..1_000).await;
        near(&server.even_cuts(only, 4).await.unwrap(), &[250, 500, 750]);
        server.flush().await.unwrap();
        let opened = server.hosts[0].opened.all().pop().unwrap();
        let coarse = opened.row_distribution(&KeyRange::all(), 1_000, 0).await.unwrap();
        let rows: u64 = coarse.iter().map(|(_, weight)| weight).sum();
        assert!(coarse.len() < 100 && (900..=1_000).contains(&rows), "{coarse:?}");
        assert_eq!(coarse[0].0, key(0));
        near(&server.even_cuts(only, 4).await.unwrap(), &[250, 500, 750]);
        write(&server, &deps, 1_000..2_000).await;
        near(&server.even_cuts(only, 4).await.unwrap(), &[500, 1_000, 1_500]);

        let made = server.split(only, &[key(500), key(900)]).await.unwrap();
        let range = KeyRange::new(key(400), Some(key(1_600)));
        let spread = server.row_spread(&range, 3).await.unwrap();
        near(&even(spread, 3, &range), &[800, 1_200]);
        near(&server.even_cuts(made.partitions[2], 2).await.unwrap(), &[1_450]);
        assert_eq!(server.even_cuts(only, 2).await, Err(ChangeError::NoSuchPartition));
        server.shutdown().await;
    }

    #[tokio::test]
    async fn recent_requests_decide_where_there_are_enough() {
        let world = World::empty();
        let deps = Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() };
        let server = Arc::new(IndexServer::open(vec![deps.clone()], world.config).await.unwrap());
        write(&server, &deps, 0..400).await;
        let partition = server.hosts[0].opened.all().pop().unwrap();
        // As a manager does, which is not running here.
        drop(partition.core.meter.samples(Duration::ZERO, 0.0));
        write(&server, &deps, 300..400).await;
        let cuts = server.even_cuts(partition.core.id, 2).await.unwrap();
        // With the few that were sampled before.
        let wanted = key(340)..=key(350);
        assert!(cuts.len() == 1 && wanted.contains(&cuts[0]), "{cuts:?}: half of the last hundred");
        server.shutdown().await;
    }
}
