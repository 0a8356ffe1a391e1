//! Snapshot Blob, Set Blob Tier, Undelete Blob, Restore Container.

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::encrypt::claim::with_encryption_header;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::state::FrontEnd;
use crate::index::RestoreContainer;
use crate::index::SetTier;
use crate::index::SnapshotBlob;
use crate::index::UndeleteBlob;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::types::AccessTier;
use crate::types::ContainerName;
use crate::types::Metadata;
use crate::types::RehydratePriority;
use crate::types::Timestamp;

/// Snapshot Blob.
pub(crate) async fn snapshot(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    metadata: Option<Metadata>,
) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate_for_change(&front.rows).await?;
    let guard = lookup::guard(precondition);
    let encryption = guard.encryption.clone();
    let write = SnapshotBlob { key: blob.key, guard, metadata };
    match commit::commit_into(&front.rows, Some(container), write, None).await {
        Ok(taken) => {
            let change = commit::change(taken.written);
            Ok(with_encryption_header(
                Reply::Snapshotted { snapshot: taken.snapshot, change },
                &encryption,
            ))
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// The tier that Set Blob Tier gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewTier {
    pub(crate) tier: AccessTier,
    /// How fast a blob leaves the archive.
    pub(crate) priority: RehydratePriority,
}

/// Set Blob Tier.
pub(crate) async fn set_tier(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    NewTier { tier, priority }: NewTier,
) -> Result<Reply, Refusal> {
    let Located { blob: BlobVersion { key, revision }, precondition, .. } =
        blob.locate(&front.rows).await?;
    let guard = lookup::guard(precondition);
    let rehydration = front.config().rehydration;
    let write = SetTier { key, revision, guard, tier, priority, rehydration };
    match commit::commit(&front.rows, write, None).await {
        Ok(pending) => Ok(Reply::TierSet { pending }),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Undelete Blob.
pub(crate) async fn undelete(front: &FrontEnd, blob: BlobTarget<'_>) -> Result<Reply, Refusal> {
    let Located { container, blob, precondition } = blob.locate(&front.rows).await?;
    let write = UndeleteBlob { key: blob.key, guard: lookup::guard(precondition) };
    loop {
        let into = Some(container.clone());
        match commit::commit_into(&front.rows, into, write.clone(), None).await {
            Ok(true) => {}
            Ok(false) => return Ok(Reply::BlobUndeleted),
            Err(error) => return Err(errors::from_index(&error, Subject::Blob)),
        }
    }
}

/// Restore Container.
pub(crate) async fn restore(
    front: &FrontEnd,
    account: &Account,
    name: ContainerName,
    (deleted, since): (ContainerName, Timestamp),
) -> Result<Reply, Refusal> {
    let write = RestoreContainer { account: account.id, name, deleted, since };
    let answer = commit::commit(&front.rows, write, None).await;
    commit::changed(answer, Subject::Container).map(Reply::ContainerCreated)
}
