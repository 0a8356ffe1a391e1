//! Counters that issue ids by compare and set. An id is issued at most once; some ids are skipped.
//!
//! All ids of a cluster have its number in their upper 16 bits, so that no two clusters issue the
//! same id. A store that was made alone has number 0.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

use crate::types::ClusterNumber;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::TxnReply;

/// Counter of extent ids.
pub const EXTENT_IDS: &[u8] = b"counter/extent";
/// Counter of account ids.
pub const ACCOUNT_IDS: &[u8] = b"counter/account";
/// Counter of container ids, before their bits are reversed.
pub const CONTAINER_IDS: &[u8] = b"counter/container";
/// Counter of partition ids.
pub const PARTITION_IDS: &[u8] = b"counter/partition";
/// Counter of node ids.
pub const NODE_IDS: &[u8] = b"counter/node";
/// Counter of incarnations of nodes.
pub const INCARNATIONS: &[u8] = b"counter/incarnation";

/// Ids that an [`IdAllocator`] takes from its counter at a time. A restart skips those that it had
/// not issued.
pub const BATCH: u64 = 64;
/// How often an allocation is tried. Each try that fails means that another caller's succeeded.
const TRIES_MAX: usize = 256;

/// Takes the next `count` ids of a cluster's counter at `key`. The first id of a counter is that of
/// [`ClusterNumber::ids`]: 1 in a store that was made alone.
///
/// If the outcome of a transaction is unknown, the counter is read again, and ids that may have
/// been taken are skipped.
///
/// # Errors
/// As of [`CounterAt`]; [`Error::Unavailable`] also if the coordinator does not answer.
pub async fn allocate(
    coordinator: &dyn Coordinator,
    cluster: ClusterNumber,
    key: &[u8],
    count: u64,
) -> Result<Range<u64>, Error> {
    for _ in 0..TRIES_MAX {
        let Taken { ids, when, then } =
            CounterAt::read(coordinator, cluster, key).await?.take(count, 1)?;
        match coordinator.txn(&[when], &[then]).await {
            Ok(TxnReply::Committed(_)) => return Ok(ids),
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {}
            Err(error) => return Err(error),
        }
    }
    let reason = format!("the counter {} is contended", key.escape_ascii());
    Err(Error::Unavailable { reason: reason.into() })
}

/// A counter as it was read, for a transaction that takes ids from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterAt {
    key: Bytes,
    /// The next id that the counter issues.
    next: u64,
    /// Where the ids of the cluster end.
    end: u64,
    unchanged: Compare,
}

/// Ids that a transaction takes from a counter.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The ids, once the transaction has succeeded.
    pub ids: Range<u64>,
    /// Its condition: that the counter is as it was read.
    pub when: Compare,
    /// Its change: the counter without these ids.
    pub then: Op,
}

impl CounterAt {
    /// Reads a cluster's counter.
    ///
    /// # Errors
    /// [`Error::Unavailable`]. [`Error::Corrupt`] if the value is not a counter, or is the counter
    /// of another cluster.
    pub async fn read(
        coordinator: &dyn Coordinator,
        cluster: ClusterNumber,
        key: &[u8],
    ) -> Result<Self, Error> {
        let key = Bytes::copy_from_slice(key);
        let Range { start, end } = cluster.ids();
        let Some(stored) = coordinator.get(&key).await? else {
            return Ok(Self {
                key: key.clone(),
                next: start,
                end,
                unchanged: Compare::Absent(key),
            });
        };
        let next = decode(&stored.value)?;
        // `end` itself is not issued, but comes next when all others are.
        if !(start..=end).contains(&next) {
            let reason = format!(
                "the counter {} is at {next:#x}, which is no id of cluster {cluster}",
                key.escape_ascii()
            );
            return Err(Error::Corrupt { reason });
        }
        let unchanged = Compare::ModRevision(key.clone(), stored.mod_revision);
        Ok(Self { key, next, end, unchanged })
    }

    /// Takes the next `count` ids, the first of which is a multiple of `align`. Ids before it are
    /// skipped.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the cluster has no such ids left.
    pub fn take(self, count: u64, align: u64) -> Result<Taken, Error> {
        let first = self.next.checked_next_multiple_of(align);
        let ids = first.and_then(|first| Some(first..first.checked_add(count)?));
        let Some(ids) = ids.filter(|ids| ids.end <= self.end) else {
            let reason = format!("the counter {} ran out of ids", self.key.escape_ascii());
            return Err(Error::Unavailable { reason: reason.into() });
        };
        let then = Op::Put(self.key, Bytes::copy_from_slice(&ids.end.to_be_bytes()));
        Ok(Taken { ids, when: self.unchanged, then })
    }
}

fn decode(value: &[u8]) -> Result<u64, Error> {
    let bytes = value
        .try_into()
        .map_err(|_| Error::Corrupt { reason: format!("a counter of {} bytes", value.len()) })?;
    Ok(u64::from_be_bytes(bytes))
}

/// Issues ids from batches of [`BATCH`], so that most ids cost no transaction.
#[derive(Debug)]
pub struct IdAllocator {
    coordinator: Arc<dyn Coordinator>,
    cluster: ClusterNumber,
    key: Bytes,
    ready: Mutex<Range<u64>>,
}

impl IdAllocator {
    /// An allocator of the ids of a cluster's counter at `key`.
    #[must_use]
    pub fn new(coordinator: Arc<dyn Coordinator>, cluster: ClusterNumber, key: &[u8]) -> Self {
        let ready = Mutex::new(0..0);
        Self { coordinator, cluster, key: Bytes::copy_from_slice(key), ready }
    }

    /// Issues an id. Cancel safe, but an id may be skipped.
    ///
    /// # Errors
    /// As [`allocate`].
    pub async fn next(&self) -> Result<u64, Error> {
        // Held during the transaction, so that concurrent callers share one batch.
        let mut ready = self.ready.lock().await;
        if let Some(id) = ready.next() {
            return Ok(id);
        }
        let coordinator = self.coordinator.as_ref();
        *ready = allocate(coordinator, self.cluster, &self.key, BATCH).await?;
        Ok(ready.next().expect("a batch is not empty"))
    }
}

#[cfg(test)]
mod tests;
