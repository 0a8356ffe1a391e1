//! What nodes need to trust each other: the authority of a cluster, which issues their
//! certificates, and tokens, with which new nodes get the master key. Layout: `api-spec/nodes.md`.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Session;
use super::api::TxnReply;
use super::nodes::Unread;
use super::nodes::{decode, encode};

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

/// The authority of a cluster. Its certificate is not here: who can write to the coordinator could
/// put another one in its place. Nodes make it from the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityRecord {
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
    /// The master key file, sealed under the secret of the token.
    pub sealed: Bytes,
}

fn token_key(id: &TokenId) -> Bytes {
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("cluster/token/{id}").into()
}

impl TokenRecord {
    /// Stores what a token stands for. The coordinator removes it after this time.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn store(
        &self,
        coordinator: &dyn Coordinator,
        id: &TokenId,
        valid: Duration,
    ) -> Result<Session, TrustError> {
        let session = coordinator.open_session(valid).await?;
        let put = Op::PutWithSession(token_key(id), encode(self), session);
        coordinator.txn(&[], &[put]).await?;
        Ok(session)
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

    fn authority(byte: u8) -> AuthorityRecord {
        AuthorityRecord { sealed_key: vec![byte, 8].into() }
    }

    #[test]
    fn records_have_golden_bytes() {
        let bytes = [1, 2, 7, 8];
        assert_eq!(encode(&authority(7)).as_ref(), bytes);
        assert_eq!(decode::<AuthorityRecord>(&bytes), Ok(authority(7)));
        let token = TokenRecord { sealed: Bytes::from_static(&[9]) };
        let bytes = [1, 1, 9];
        assert_eq!(encode(&token).as_ref(), bytes);
        assert_eq!(decode::<TokenRecord>(&bytes), Ok(token));
        assert_eq!(token_key(&[0xAB; 16]), "cluster/token/".to_owned() + &"ab".repeat(16));
    }

    #[tokio::test(start_paused = true)]
    async fn first_authority_stays() {
        let coordinator = SimulatedStore::new().open(&env());
        assert_eq!(AuthorityRecord::read(&coordinator).await.unwrap(), None);
        assert_eq!(authority(1).make(&coordinator).await.unwrap(), authority(1));
        assert_eq!(authority(2).make(&coordinator).await.unwrap(), authority(1));
    }

    #[tokio::test(start_paused = true)]
    async fn token_is_good_once_and_not_after_its_time() {
        let coordinator = SimulatedStore::new().open(&env());
        let token = TokenRecord { sealed: Bytes::from_static(&[9]) };
        let hour = Duration::from_secs(3600);
        token.store(&coordinator, &[1; 16], hour).await.unwrap();
        let take = async |id: u8| TokenRecord::take(&coordinator, &[id; 16]).await.unwrap();
        assert_eq!(take(2).await, None);
        assert_eq!(take(1).await, Some(token.clone()));
        assert_eq!(take(1).await, None);
        let session = token.store(&coordinator, &[1; 16], hour).await.unwrap();
        coordinator.close_session(session).await.unwrap();
        assert_eq!(take(1).await, None);
    }
}
