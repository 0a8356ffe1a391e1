//! How many groups repair has not finished, as the node that serves stores it for `cluster status`.
//! Layout: `api-spec/nodes.md`.

use bytes::Bytes;

use crate::coordinator::Coordinator;
use crate::coordinator::Error;
use crate::coordinator::Op;

/// The coordinator's key.
const KEY: &[u8] = b"cluster/unfinished";

/// Closed groups that are not yet known to have all their copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfinished(pub(super) u64);

impl Unfinished {
    /// Reads what was stored last; `None` if no node has served yet, or a newer release stored it.
    pub(super) async fn read(coordinator: &dyn Coordinator) -> Result<Option<Self>, Error> {
        let found = coordinator.get(KEY).await?;
        let count = found.and_then(|found| found.value.as_ref().try_into().ok());
        Ok(count.map(|count| Self(u64::from_be_bytes(count))))
    }

    /// Stores it, unless that is what is stored.
    pub(super) async fn store(self, coordinator: &dyn Coordinator) -> Result<(), Error> {
        if Self::read(coordinator).await? == Some(self) {
            return Ok(());
        }
        let value = Bytes::from(self.0.to_be_bytes().to_vec());
        coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), value)]).await?;
        Ok(())
    }
}
