//! What nodes need to trust each other: the authority of a cluster, which issues their
//! certificates, and tokens, with which new nodes get the master key. Layout: `api-spec/nodes.md`.

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
use crate::types::Timestamp;

/// The key of the authority's record.
const AUTHORITY_KEY: &[u8] = b"cluster/authority";

/// Why such a record cannot be used.
#[derive(Clone, Debug, ThisError)]
pub enum TrustError {
    /// The record cannot be read.
    #[error("it cannot be read: {0}")]
    Unread(#[from] Unread),
    /// The coordinator does not answer, refuses or is damaged.
    #[error(transparent)]
    Coordinator(#[from] Error),
}

/// The authority of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityRecord {
    /// Its certificate, in PEM.
    pub certificate: String,
    /// Its private key in PEM, sealed under the master key of the cluster.
    pub sealed_key: Bytes,
}

impl AuthorityRecord {
    /// Reads the authority of the cluster, if it has one.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn read(coordinator: &dyn Coordinator) -> Result<Option<Self>, TrustError> {
        let found = coordinator.get(AUTHORITY_KEY).await?;
        Ok(found.map(|found| decode(&found.value)).transpose()?)
    }

    /// Makes this the authority of the cluster, unless it has one. Returns the one that it has.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn make(self, coordinator: &dyn Coordinator) -> Result<Self, TrustError> {
        let key = Bytes::from_static(AUTHORITY_KEY);
        let put = [Op::Put(key.clone(), encode(&self))];
        match coordinator.txn(&[Compare::Absent(key)], &put).await {
            Ok(TxnReply::Committed(_)) => Ok(self),
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {
                Ok(Self::read(coordinator).await?.ok_or(Error::Ambiguous)?)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The public part of a token, by which it is found.
pub type TokenId = [u8; 16];

/// What a token stands for. It is good once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// After this time it is not good any more.
    pub ends: Timestamp,
    /// The master key file, sealed under the secret of the token.
    pub sealed: Bytes,
}

fn token_key(id: &TokenId) -> Bytes {
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("cluster/token/{id}").into()
}

impl TokenRecord {
    /// Stores what a token stands for.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn store(
        &self,
        coordinator: &dyn Coordinator,
        id: &TokenId,
    ) -> Result<(), TrustError> {
        let put = Op::Put(token_key(id), encode(self));
        coordinator.txn(&[], &[put]).await?;
        Ok(())
    }

    /// Takes what a token stands for. Nobody gets it after that. `None` if there is no such token,
    /// or if somebody else has taken it.
    ///
    /// # Errors
    /// [`TrustError`]. The token may be gone.
    pub async fn take(
        coordinator: &dyn Coordinator,
        id: &TokenId,
    ) -> Result<Option<Self>, TrustError> {
        let key = token_key(id);
        let Some(found) = coordinator.get(&key).await? else { return Ok(None) };
        let when = [Compare::ModRevision(key.clone(), found.mod_revision)];
        match coordinator.txn(&when, &[Op::Delete(key)]).await? {
            TxnReply::Committed(_) => Ok(Some(decode(&found.value)?)),
            TxnReply::Rejected(_) => Ok(None),
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

    fn env() -> Env {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        Env { clock, rand, tasks: Tasks::new() }
    }

    fn authority(certificate: &str) -> AuthorityRecord {
        let certificate = certificate.to_owned();
        AuthorityRecord { certificate, sealed_key: Bytes::from_static(&[7, 8]) }
    }

    #[test]
    fn records_have_golden_bytes() {
        let bytes = [1, 2, b'p', b'q', 2, 7, 8];
        assert_eq!(encode(&authority("pq")).as_ref(), bytes);
        assert_eq!(decode::<AuthorityRecord>(&bytes), Ok(authority("pq")));
        let token =
            TokenRecord { ends: Timestamp::from_ticks(300), sealed: Bytes::from_static(&[9]) };
        let bytes = [1, 0xAC, 0x02, 1, 9];
        assert_eq!(encode(&token).as_ref(), bytes);
        assert_eq!(decode::<TokenRecord>(&bytes), Ok(token));
        assert_eq!(token_key(&[0xAB; 16]), "cluster/token/".to_owned() + &"ab".repeat(16));
    }

    #[tokio::test(start_paused = true)]
    async fn first_authority_stays() {
        let coordinator = SimulatedStore::new().open(&env());
        assert_eq!(AuthorityRecord::read(&coordinator).await.unwrap(), None);
        let first = authority("first");
        assert_eq!(first.clone().make(&coordinator).await.unwrap(), first);
        assert_eq!(authority("second").make(&coordinator).await.unwrap(), first);
    }

    #[tokio::test(start_paused = true)]
    async fn token_is_good_once() {
        let coordinator = SimulatedStore::new().open(&env());
        let token = TokenRecord { ends: Timestamp::ZERO, sealed: Bytes::from_static(&[9]) };
        token.store(&coordinator, &[1; 16]).await.unwrap();
        assert_eq!(TokenRecord::take(&coordinator, &[2; 16]).await.unwrap(), None);
        assert_eq!(TokenRecord::take(&coordinator, &[1; 16]).await.unwrap(), Some(token));
        assert_eq!(TokenRecord::take(&coordinator, &[1; 16]).await.unwrap(), None);
    }
}
