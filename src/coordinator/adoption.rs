//! A cluster that is made of the store of a single node. Its keys are copied first. One transaction
//! then makes the record of the cluster, and with that all of them count. Layout:
//! `api-spec/nodes.md`.

use bytes::Bytes;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::TxnReply;
use super::cluster::ADOPTING_KEY;
use super::cluster::ClusterError;
use super::cluster::ClusterRecord;
use super::cluster::KEY;
use super::nodes::encode;

/// Changes of one transaction.
const TOGETHER: usize = 64;
/// How often a transaction is tried whose outcome is unknown.
const TRIES_MAX: usize = 32;

/// What there is of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, and there is no other cluster.
    Nothing,
    /// Its keys are being copied, and nobody counts them yet.
    Begun,
    /// It is made.
    Live,
}

/// A cluster whose keys are being copied. Nobody else makes one here meanwhile.
#[derive(Debug)]
pub struct Adoption<'a> {
    coordinator: &'a dyn Coordinator,
    record: ClusterRecord,
    /// The value of [`ADOPTING_KEY`].
    mark: Bytes,
}

impl<'a> Adoption<'a> {
    /// Begins, or goes on after an interruption. `None`: the cluster is made.
    ///
    /// # Errors
    /// [`ClusterError::Made`] and [`ClusterError::Adopting`] of another cluster,
    /// [`ClusterError::NotEmpty`]; [`ClusterError::Unread`], [`ClusterError::Coordinator`].
    pub async fn begin(
        coordinator: &'a dyn Coordinator,
        record: ClusterRecord,
    ) -> Result<Option<Self>, ClusterError> {
        let mark = mark_of(&record);
        for _ in 0..TRIES_MAX {
            match Self::find(coordinator, &record).await? {
                Found::Live => return Ok(None),
                Found::Begun => return Ok(Some(Self { coordinator, record, mark })),
                Found::Nothing => {}
            }
            let when = [KEY, ADOPTING_KEY].map(|key| Compare::Absent(Bytes::from_static(key)));
            let put = [Op::Put(Bytes::from_static(ADOPTING_KEY), mark.clone())];
            match coordinator.txn(&when, &put).await {
                Ok(_) | Err(Error::Ambiguous) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended())
    }

    /// What there is of the cluster of this record. Changes nothing.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub async fn find(
        coordinator: &dyn Coordinator,
        record: &ClusterRecord,
    ) -> Result<Found, ClusterError> {
        let mark = mark_of(record);
        match ClusterRecord::read(coordinator).await {
            Ok(made) if made.is(record) => return Ok(Found::Live),
            Ok(made) => return Err(ClusterError::Made { number: made.number }),
            Err(ClusterError::NotMade) => {}
            Err(error) => return Err(error),
        }
        match coordinator.get(ADOPTING_KEY).await? {
            Some(found) if found.value == mark => Ok(Found::Begun),
            Some(_) => Err(ClusterError::Adopting),
            None => match coordinator.range(b"").await?.entries.into_iter().next() {
                None => Ok(Found::Nothing),
                Some((key, _)) if key == ADOPTING_KEY || key == KEY => Ok(Found::Nothing),
                Some((key, _)) => {
                    Err(ClusterError::NotEmpty { key: key.escape_ascii().to_string() })
                }
            },
        }
    }

    /// Copies keys. They may have been copied before.
    ///
    /// # Errors
    /// [`ClusterError::Adopting`], [`ClusterError::Made`]: somebody else has gone on with it, or
    /// has given it up. [`ClusterError::Coordinator`].
    pub async fn copy(&self, puts: &[Op]) -> Result<(), ClusterError> {
        for some in puts.chunks(TOGETHER) {
            if let Some(found) = self.commit(some).await? {
                return Err(self.ended(found));
            }
        }
        Ok(())
    }

    /// Makes the cluster, with the last of its keys.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub async fn finish(self, last: &[Op]) -> Result<(), ClusterError> {
        let made = [
            Op::Put(Bytes::from_static(KEY), self.record.encode()),
            Op::Delete(Bytes::from_static(ADOPTING_KEY)),
        ];
        match self.commit(&[last, &made].concat()).await? {
            None | Some(Found::Live) => Ok(()),
            Some(found @ (Found::Begun | Found::Nothing)) => Err(self.ended(found)),
        }
    }

    /// Gives it up: the keys that `is_copied` names are removed.
    ///
    /// # Errors
    /// [`ClusterError::Made`]: the cluster is made. [`ClusterError::Coordinator`].
    pub async fn undo(self, is_copied: impl Fn(&[u8]) -> bool + Send) -> Result<(), ClusterError> {
        let all = self.coordinator.range(b"").await?.entries;
        let copied = all.into_iter().map(|(key, _)| key);
        let copied = copied.filter(|key| key != ADOPTING_KEY && is_copied(key));
        let deletes: Vec<Op> = copied.map(Op::Delete).collect();
        self.copy(&deletes).await?;
        match self.commit(&[Op::Delete(Bytes::from_static(ADOPTING_KEY))]).await? {
            None | Some(Found::Nothing) => Ok(()),
            Some(found @ (Found::Begun | Found::Live)) => Err(self.ended(found)),
        }
    }

    /// Changes keys, if this adoption goes on. Returns what there is instead if it does not: an
    /// earlier try, whose answer was lost, may have ended it.
    async fn commit(&self, then: &[Op]) -> Result<Option<Found>, ClusterError> {
        let when = [
            Compare::Value(Bytes::from_static(ADOPTING_KEY), self.mark.clone()),
            Compare::Absent(Bytes::from_static(KEY)),
        ];
        for _ in 0..TRIES_MAX {
            match self.coordinator.txn(&when, then).await {
                Ok(TxnReply::Committed(_)) => return Ok(None),
                Ok(TxnReply::Rejected(_)) => {
                    return Self::find(self.coordinator, &self.record).await.map(Some);
                }
                Err(Error::Ambiguous) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended())
    }

    /// Why this adoption does not go on.
    fn ended(&self, found: Found) -> ClusterError {
        match found {
            Found::Live => ClusterError::Made { number: self.record.number },
            Found::Begun | Found::Nothing => ClusterError::Adopting,
        }
    }
}

fn mark_of(record: &ClusterRecord) -> Bytes {
    encode(&(record.number, record.id))
}

fn contended() -> ClusterError {
    Error::Unavailable { reason: "it gives no certain answer".into() }.into()
}

#[cfg(test)]
mod tests;
