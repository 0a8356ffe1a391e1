//! Lists the rows of accounts. Partitions that do not serve are skipped.

use futures_util::future::try_join_all;

use crate::frontend::accounts::Unread;
use crate::index::AccountEntry;
use crate::index::AccountRecord;
use crate::index::Error;
use crate::index::ListAccounts;
use crate::index::Router;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// Accounts read at a time.
const PAGE: usize = 1000;

/// The rows of accounts that could be read.
#[derive(Debug, Default)]
pub struct AccountRows {
    /// Names and records, in name order within a range that was read.
    pub rows: Vec<(AccountName, AccountRecord)>,
    /// The ranges that could not be read.
    pub unread: Vec<Unread>,
}

impl AccountRows {
    /// The keys of all accounts.
    #[must_use]
    pub fn table() -> KeyRange {
        RoutingKey::container_range(AccountId::new(0), ContainerId::new(0))
    }

    /// Reads the rows of some ranges. All partitions are read concurrently: one that does not serve
    /// takes as long as the router waits, and all of them together take no longer.
    ///
    /// # Errors
    /// The index's, except outages: their ranges are noted as unread.
    pub async fn read(router: &Router, ranges: &[KeyRange]) -> Result<Self, Error> {
        let map = router.map();
        let partitions = map.partitions().iter();
        let mut lows: Vec<&RoutingKey> =
            partitions.map(|partition| partition.keys.range().low()).collect();
        lows.sort();
        lows.dedup();
        let parts = ranges.iter().flat_map(|range| split_at(range, &lows));
        let read = |part| async move {
            let mut found = Self::default();
            found.read_part(router, &part).await.map(|()| found)
        };
        let mut all = Self::default();
        for found in try_join_all(parts.map(read)).await? {
            all.rows.extend(found.rows);
            all.unread.extend(found.unread);
        }
        Ok(all)
    }

    async fn read_part(&mut self, router: &Router, range: &KeyRange) -> Result<(), Error> {
        let mut next = Some(range.low().as_bytes().clone());
        while let Some(from) = next.filter(|from| range.contains(from)) {
            let list = ListAccounts { from: Some(from.clone()), limit: PAGE };
            let page = match router.ask(list).await {
                Ok(page) => page,
                Err(error @ Error::Refused(_)) => return Err(error),
                Err(error) => {
                    let rest = KeyRange::new(RoutingKey::from_bytes(from), range.high().cloned());
                    let unread = part_of_one(router, &rest, &error)?;
                    next = unread.keys.high().map(|high| high.as_bytes().clone());
                    self.unread.push(unread);
                    continue;
                }
            };
            let rows = page.entries.into_iter().filter_map(|AccountEntry { name, record }| {
                let Ok(name) = AccountName::new(&name) else {
                    tracing::error!(
                        name,
                        "the row of an account has no valid name; the account is left out"
                    );
                    return None;
                };
                let is_in = range.contains(RoutingKey::account(&name).as_bytes());
                is_in.then_some((name, record))
            });
            self.rows.extend(rows);
            next = page.next;
        }
        Ok(())
    }
}

/// Splits a range at those of the keys that lie in it.
fn split_at(range: &KeyRange, keys: &[&RoutingKey]) -> Vec<KeyRange> {
    let inner = keys.iter().filter(|key| **key > range.low() && range.contains(key.as_bytes()));
    let mut parts = Vec::new();
    let mut low = range.low().clone();
    for key in inner {
        let next = (*key).clone();
        parts.push(KeyRange::new(std::mem::replace(&mut low, next.clone()), Some(next)));
    }
    parts.push(KeyRange::new(low, range.high().cloned()));
    parts
}

/// The first part of `keys` that one partition owns, which failed with `error`.
///
/// # Errors
/// [`Error::WrongPartition`] when no partition has them.
pub fn part_of_one(router: &Router, keys: &KeyRange, error: &Error) -> Result<Unread, Error> {
    let map = router.map();
    let owner = map.owner(keys.low().as_bytes());
    let (partition, keys) = owner
        .and_then(|owner| Some((owner.id, owner.keys.range().intersect(keys)?)))
        .ok_or(Error::WrongPartition)?;
    tracing::debug!(%partition, ?keys, %error, "accounts cannot be read");
    Ok(Unread { keys, partition, in_doubt: false })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::coordinator::Coordinator;
    use crate::coordinator::SimulatedStore;
    use crate::index::AccountPage;
    use crate::index::Read;
    use crate::index::ReadReply;
    use crate::index::Target;
    use crate::index::client::testing::ReadIndex;
    use crate::index::client::testing::Reads;
    use crate::index::client::testing::env;
    use crate::index::client::testing::publish;
    use crate::types::PartitionId;

    /// Has empty partitions, of which only the first is open.
    #[derive(Debug)]
    struct OneOpen;

    #[async_trait]
    impl Reads for OneOpen {
        async fn read(&self, target: Target, _read: Read) -> Result<ReadReply, Error> {
            if target.partition == PartitionId::new(1) {
                Ok(ReadReply::Accounts(AccountPage { entries: Vec::new(), next: None }))
            } else {
                Err(Error::WrongPartition)
            }
        }
    }

    fn bound(name: &str) -> RoutingKey {
        RoutingKey::account(&AccountName::new(name).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_that_do_not_serve_are_waited_for_together() {
        let env = env();
        let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
        let names = ["bbb", "ccc", "ddd", "eee"].map(bound);
        let lows = [vec![RoutingKey::min()], names.to_vec()].concat();
        let highs = names.iter().cloned().map(Some).chain([None]);
        for (number, (low, high)) in (1..).zip(lows.into_iter().zip(highs)) {
            publish(coordinator.as_ref(), (number, 1), KeyRange::new(low, high)).await;
        }
        let (host, clock) = (Arc::new(ReadIndex(Arc::new(OneOpen))), Arc::clone(&env.clock));
        let router = Router::new(host, coordinator, env).await.unwrap();
        let begun = clock.monotonic();
        let found = AccountRows::read(&router, &[AccountRows::table()]).await.unwrap();
        let unread: Vec<u64> = found.unread.iter().map(|one| one.partition.get()).collect();
        assert_eq!(unread, [2, 3, 4, 5]);
        let took = clock.monotonic() - begun;
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
