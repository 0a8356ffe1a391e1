//! Counters that issue ids by compare and set. An id is issued at most once; some ids are skipped.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

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

/// The first id of every counter. Zero is reserved.
const FIRST: u64 = 1;
/// Ids that an [`IdAllocator`] takes from its counter at a time. A restart skips those that it had
/// not issued.
pub const BATCH: u64 = 64;
/// How often an allocation is tried. Each try that fails means that another caller's succeeded.
const TRIES_MAX: usize = 256;

/// Takes the next `count` ids of the counter at `key`. The first id of a counter is 1.
///
/// If the outcome of a transaction is unknown, the counter is read again, and ids that may have
/// been taken are skipped.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`] if the value is not a counter.
pub async fn allocate(
    coordinator: &dyn Coordinator,
    key: &[u8],
    count: u64,
) -> Result<Range<u64>, Error> {
    let key = Bytes::copy_from_slice(key);
    for _ in 0..TRIES_MAX {
        let (next, unchanged) = match coordinator.get(&key).await? {
            Some(stored) => {
                (decode(&stored.value)?, Compare::ModRevision(key.clone(), stored.mod_revision))
            }
            None => (FIRST, Compare::Absent(key.clone())),
        };
        let after = next.checked_add(count).ok_or_else(|| Error::Unavailable {
            reason: format!("the counter {} ran out", key.escape_ascii()).into(),
        })?;
        let put = Op::Put(key.clone(), Bytes::copy_from_slice(&after.to_be_bytes()));
        match coordinator.txn(&[unchanged], &[put]).await {
            Ok(TxnReply::Committed(_)) => return Ok(next..after),
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {}
            Err(error) => return Err(error),
        }
    }
    let reason = format!("the counter {} is contended", key.escape_ascii());
    Err(Error::Unavailable { reason: reason.into() })
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
    key: Bytes,
    ready: Mutex<Range<u64>>,
}

impl IdAllocator {
    /// An allocator of the ids of the counter at `key`.
    #[must_use]
    pub fn new(coordinator: Arc<dyn Coordinator>, key: &[u8]) -> Self {
        Self { coordinator, key: Bytes::copy_from_slice(key), ready: Mutex::new(0..0) }
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
        *ready = allocate(self.coordinator.as_ref(), &self.key, BATCH).await?;
        Ok(ready.next().expect("a batch is not empty"))
    }
}

#[cfg(test)]
mod tests;
