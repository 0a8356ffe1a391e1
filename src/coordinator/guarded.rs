//! A coordinator that changes nothing after a claim was lost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Revision;
use super::api::Session;
use super::api::Snapshot;
use super::api::TxnReply;
use super::api::Versioned;
use super::api::Watch;

/// A coordinator each of whose transactions has one more condition: that a key still has the
/// revision that its holder wrote. So a process that does not know yet that it has lost its claim
/// cannot take anything back from the next one.
#[derive(Debug)]
pub struct Guarded {
    inner: Arc<dyn Coordinator>,
    key: Bytes,
    revision: Revision,
}

impl Guarded {
    /// A coordinator that changes things while `key` has this revision.
    #[must_use]
    pub const fn new(inner: Arc<dyn Coordinator>, key: Bytes, revision: Revision) -> Self {
        Self { inner, key, revision }
    }

    /// Whether a transaction was rejected for one of its own conditions.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the claim was lost, or if that cannot be found out.
    async fn is_own(&self) -> Result<(), Error> {
        let found = match self.inner.get(&self.key).await {
            Ok(found) => found,
            // Nothing changed, whatever the reason.
            Err(error) => return Err(Error::Unavailable { reason: error.to_string().into() }),
        };
        match found {
            Some(found) if found.mod_revision == self.revision => Ok(()),
            Some(_) | None => {
                let reason = "this process has lost its claim, and changes nothing any more";
                Err(Error::Unavailable { reason: reason.to_owned().into() })
            }
        }
    }
}

#[async_trait]
impl Coordinator for Guarded {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        self.inner.get(key).await
    }

    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        self.inner.range(prefix).await
    }

    /// As [`Coordinator::txn`], with at most 127 conditions.
    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        let guard = Compare::ModRevision(self.key.clone(), self.revision);
        let when = [when, &[guard]].concat();
        let reply = self.inner.txn(&when, then).await?;
        if let TxnReply::Rejected(_) = reply {
            self.is_own().await?;
        }
        Ok(reply)
    }

    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error> {
        self.inner.watch(prefix, after).await
    }

    async fn open_session(&self, ttl: Duration) -> Result<Session, Error> {
        self.inner.open_session(ttl).await
    }

    async fn keep_alive(&self, session: Session) -> Result<(), Error> {
        self.inner.keep_alive(session).await
    }

    async fn close_session(&self, session: Session) -> Result<(), Error> {
        self.inner.close_session(session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;

    const CLAIM: Bytes = Bytes::from_static(b"claim");
    const KEY: Bytes = Bytes::from_static(b"key");

    fn put(value: &'static str) -> [Op; 1] {
        [Op::Put(KEY, Bytes::from_static(value.as_bytes()))]
    }

    #[tokio::test]
    async fn nothing_is_changed_after_the_claim_was_lost() {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let inner = Arc::new(SimulatedStore::new().open(&env)) as Arc<dyn Coordinator>;
        let claim = [Op::Put(CLAIM, Bytes::new())];
        let TxnReply::Committed(claimed) = inner.txn(&[], &claim).await.unwrap() else { panic!() };
        let guarded = Guarded::new(Arc::clone(&inner), CLAIM, claimed);
        let written = guarded.txn(&[], &put("1")).await.unwrap();
        assert!(matches!(written, TxnReply::Committed(_)));
        // Its own condition does not hold.
        let rejected = guarded.txn(&[Compare::Absent(KEY)], &put("2")).await.unwrap();
        assert!(matches!(rejected, TxnReply::Rejected(_)));
        for lost in [claim, [Op::Delete(CLAIM)]] {
            inner.txn(&[], &lost).await.unwrap();
            let refused = guarded.txn(&[], &put("3")).await.unwrap_err();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
            let refused = guarded.txn(&[Compare::Absent(KEY)], &put("3")).await.unwrap_err();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
        }
        assert_eq!(guarded.get(&KEY).await.unwrap().unwrap().value, Bytes::from_static(b"1"));
    }
}
