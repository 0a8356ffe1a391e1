//! What a cluster is: its number, its id and how many copies an extent has. It is made once, before
//! the first node joins. Layout: `api-spec/nodes.md`.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::TxnReply;
use super::nodes::Unread;
use super::nodes::{decode, encode};
use crate::types::ClusterNumber;

/// The key of the record.
pub(super) const KEY: &[u8] = b"cluster/record";
/// The key that exists while the store of a single node is copied here.
pub(super) const ADOPTING_KEY: &[u8] = b"cluster/adopting";
/// The most copies of an extent.
pub const COPIES_MAX: u8 = 5;

/// What a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// The number, which all ids of the cluster carry. Not 0, which stores that were made alone
    /// have.
    pub number: ClusterNumber,
    /// Drawn when the cluster was made. It tells clusters of one number apart.
    pub id: u128,
    /// Grows when the coordinator is rebuilt.
    pub generation: u64,
    /// Copies of each extent, 1 to [`COPIES_MAX`].
    pub copies: u8,
}

/// Why there is no cluster to join, or none can be made.
#[derive(Clone, Debug, ThisError)]
pub enum ClusterError {
    /// Nobody has made one here.
    #[error(
        "there is no cluster in this coordinator: `blockyard cluster init` makes one, or \
         `blockyard cluster adopt` of a single node, which must be finished if it was interrupted"
    )]
    NotMade,
    /// One was made here before.
    #[error("cluster {number} was already made in this coordinator; nothing was changed")]
    Made {
        /// Its number.
        number: ClusterNumber,
    },
    /// The store of a single node is being copied here.
    #[error(
        "a single node is being adopted here: run the same `blockyard cluster adopt` again to \
         finish it, or with --undo to give it up"
    )]
    Adopting,
    /// There are keys of something else.
    #[error(
        "the coordinator holds keys of something else under this prefix, `{key}` for instance: \
         give another --coordinator-prefix"
    )]
    NotEmpty {
        /// One of them.
        key: String,
    },
    /// The record cannot be read.
    #[error("the record of the cluster cannot be read: {0}")]
    Unread(#[from] Unread),
    /// The coordinator does not answer, refuses or is damaged.
    #[error(transparent)]
    Coordinator(#[from] Error),
}

impl ClusterRecord {
    /// The value in the coordinator.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn decode(value: &[u8]) -> Result<Self, Unread> {
        let record: Self = decode(value)?;
        let is_sane = record.number != ClusterNumber::ALONE && record.copies != 0;
        if is_sane { Ok(record) } else { Err(Unread::Malformed) }
    }

    /// Whether another record is of the same cluster.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        (self.number, self.id) == (other.number, other.id)
    }

    /// Reads the record of the cluster.
    ///
    /// # Errors
    /// [`ClusterError::NotMade`], [`ClusterError::Unread`], [`ClusterError::Coordinator`].
    pub async fn read(coordinator: &dyn Coordinator) -> Result<Self, ClusterError> {
        let found = coordinator.get(KEY).await?.ok_or(ClusterError::NotMade)?;
        Ok(Self::decode(&found.value)?)
    }

    /// Refuses a coordinator that has a cluster, or will have one.
    ///
    /// # Errors
    /// [`ClusterError::Made`], [`ClusterError::Adopting`], [`ClusterError::Unread`],
    /// [`ClusterError::Coordinator`].
    pub async fn none(coordinator: &dyn Coordinator) -> Result<(), ClusterError> {
        match Self::read(coordinator).await {
            Ok(made) => return Err(ClusterError::Made { number: made.number }),
            Err(ClusterError::NotMade) => {}
            Err(error) => return Err(error),
        }
        let is_adopting = coordinator.get(ADOPTING_KEY).await?.is_some();
        if is_adopting { Err(ClusterError::Adopting) } else { Ok(()) }
    }

    /// Makes the cluster.
    ///
    /// # Errors
    /// [`ClusterError::Made`], [`ClusterError::Adopting`], [`ClusterError::Coordinator`].
    pub async fn make(&self, coordinator: &dyn Coordinator) -> Result<(), ClusterError> {
        let when = [KEY, ADOPTING_KEY].map(|key| Compare::Absent(Bytes::from_static(key)));
        let put = [Op::Put(Bytes::from_static(KEY), self.encode())];
        match coordinator.txn(&when, &put).await {
            Ok(TxnReply::Committed(_)) => Ok(()),
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {
                // If it is this one, the answer to the transaction was lost.
                match Self::read(coordinator).await {
                    Ok(found) if found == *self => return Ok(()),
                    Ok(_) | Err(_) => {}
                }
                Self::none(coordinator).await?;
                Err(Error::Ambiguous.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coordinator::simulated::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;

    const RECORD: ClusterRecord =
        ClusterRecord { number: ClusterNumber::new(7), id: 300, generation: 1, copies: 3 };

    #[test]
    fn record_has_golden_bytes() {
        let bytes = [1, 7, 0xAC, 0x02, 1, 3];
        assert_eq!(RECORD.encode().as_ref(), bytes);
        assert_eq!(ClusterRecord::decode(&bytes), Ok(RECORD));
        assert_eq!(ClusterRecord::decode(&[2, 7]), Err(Unread::Newer(2)));
        // Without a number, without copies, cut off, with bytes behind it.
        let malformed: [&[u8]; 4] =
            [&[1, 0, 1, 1, 3], &[1, 7, 1, 1, 0], &[1, 7, 1, 1], &[1, 7, 1, 1, 3, 0]];
        for bytes in malformed {
            assert_eq!(ClusterRecord::decode(bytes), Err(Unread::Malformed), "{bytes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cluster_is_made_once() {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let coordinator = SimulatedStore::new().open(&env);
        let none = ClusterRecord::read(&coordinator).await;
        assert!(matches!(none, Err(ClusterError::NotMade)), "{none:?}");
        RECORD.make(&coordinator).await.unwrap();
        // Repeated by a caller that got no answer.
        RECORD.make(&coordinator).await.unwrap();
        let other = ClusterRecord { id: 301, ..RECORD };
        let made = other.make(&coordinator).await;
        assert!(matches!(made, Err(ClusterError::Made { number }) if number == RECORD.number));
        assert_eq!(ClusterRecord::read(&coordinator).await.unwrap(), RECORD);
    }
}
