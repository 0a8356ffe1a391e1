//! The transaction by which descriptors replace others.

use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, Revision, TxnReply};
use crate::index::engine::log::writer::LogState;
use crate::index::engine::shared::Failed;
use crate::index::map::PartitionDescriptor;

/// Tries while the outcome is unknown.
const TRIES: usize = 3;

/// Replaces `old` by `new`, all or nothing. A new one has the id of an old one that it follows, or one never used before.
///
/// # Errors
/// [`Failed::Refused`]: surely nothing has changed. [`Failed::Fenced`]: another owner changed one
/// of the old ones. [`Failed::Other`]: the outcome is unknown.
pub(super) async fn replace(
    coordinator: &dyn Coordinator,
    old: &[&LogState],
    new: &[PartitionDescriptor],
) -> Result<Revision, Failed> {
    let key =
        |descriptor: &PartitionDescriptor| PartitionDescriptor::coordinator_key(descriptor.id);
    let unchanged = old.iter().map(|old| Compare::ModRevision(key(&old.descriptor), old.revision));
    let follows = |new: &PartitionDescriptor| old.iter().any(|old| old.descriptor.id == new.id);
    let fresh = new.iter().filter(|new| !follows(new)).map(|new| Compare::Absent(key(new)));
    let when: Vec<Compare> = unchanged.chain(fresh).collect();
    let gone = old.iter().filter(|old| new.iter().all(|new| new.id != old.descriptor.id));
    let puts = new.iter().map(|new| Op::Put(key(new), new.encode()));
    let then: Vec<Op> = gone.map(|old| Op::Delete(key(&old.descriptor))).chain(puts).collect();
    let unknown = |error: coordinator::Error| Failed::Other(error.to_string());
    let Some(first) = new.first() else {
        return Err(Failed::Refused("nothing to change".into()));
    };
    let mut doubt = false;
    for _ in 0..TRIES {
        match coordinator.txn(&when, &then).await {
            Ok(TxnReply::Committed(revision)) => return Ok(revision),
            Ok(TxnReply::Rejected(_)) if !doubt => return Err(Failed::Fenced),
            Ok(TxnReply::Rejected(_)) | Err(coordinator::Error::Ambiguous) => doubt = true,
            Err(error) if !doubt => return Err(Failed::Refused(error.to_string())),
            Err(error) => return Err(unknown(error)),
        }
        let found = coordinator.get(&key(first)).await.map_err(unknown)?;
        if let Some(found) = found.filter(|found| found.value == first.encode()) {
            return Ok(found.mod_revision);
        }
        for old in old {
            let found = coordinator.get(&key(&old.descriptor)).await.map_err(unknown)?;
            if found.is_none_or(|found| found.mod_revision != old.revision) {
                return Err(Failed::Fenced);
            }
        }
    }
    Err(Failed::Other("the coordinator's answers stay unknown".into()))
}
