//! Deletes several blobs of one container.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::index::DeleteBlob;
use crate::index::FoundContainer;
use crate::index::inflight::ChangeNote;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobDeletion;
use crate::protocol::model::operation::DeleteBlobs;
use crate::protocol::model::reply::BlobDeleted;
use crate::protocol::model::reply::BlobsDeleted;
use crate::protocol::model::reply::Deletion;
use crate::types::BlobKey;
use crate::types::DeleteScope;

/// Blobs deleted at a time.
const PARALLEL: usize = 16;
/// Bytes that an entry of the answer takes beside its name: elements, a code and a message.
const ENTRY_BYTES: u64 = 1_024;
/// The most bytes that a byte of a name takes: two character references and the byte itself.
const NAME_FACTOR: u64 = 13;

/// About the most memory that the answer takes.
pub(crate) fn answer_memory(items: &[BlobDeletion]) -> u64 {
    let of = |item: &BlobDeletion| ENTRY_BYTES + NAME_FACTOR * item.name.len() as u64;
    items.iter().map(of).sum()
}

/// Deletes the blobs one by one. A refused deletion does not stop the others. A missing blob counts
/// as deleted.
///
/// # Errors
/// Those of the container. Errors of single blobs are in the reply.
pub(crate) async fn delete(
    front: &FrontEnd,
    account: &Account,
    deletions: DeleteBlobs,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let DeleteBlobs { bypass, container, items, quiet, may_delete_versions } = deletions;
    let noted = Arc::new(front.rows.inflight.commit());
    let record = lookup::container(&front.rows, account, &container).await?;
    let protection = account.protection(front.rows.retention_day);
    let found = FoundContainer { account: account.id, name: container, id: record.id, protection };
    let found = &found;
    let protection = record.protection(protection);
    let mut deleted = Vec::with_capacity(items.len());
    // A deletion's future is created only when it may run: creating all of them immediately would
    // take much memory.
    let mut running = FuturesOrdered::new();
    for BlobDeletion { name, blob, scope, version, mut precondition } in items {
        if running.len() == PARALLEL {
            deleted.extend(running.next().await);
        }
        let blob = blob.map(|blob| lookup::key_in(account, &record, blob));
        let blob = blob.and_then(|key| match scope.is_version() && !may_delete_versions {
            true => Err(Reason::AuthorizationPermissionMismatch.into()),
            false => Ok(key),
        });
        precondition.protection = protection;
        precondition.lock.bypass = bypass && scope.is_version();
        let noted = Arc::clone(&noted);
        running.push_back(async move {
            let outcome = match blob {
                Ok(key) => delete_one(front, found, One { key, scope, precondition, noted }).await,
                Err(refused) => Err(refused),
            };
            if let Err(refused) = &outcome {
                front.count_refused(refused);
            }
            BlobDeleted { name, version, outcome }
        });
    }
    deleted.extend(running.collect::<Vec<_>>().await);
    drop(memory);
    Ok(Reply::BlobsDeleted(BlobsDeleted { items: deleted, quiet }))
}

/// One of the blobs.
struct One {
    key: BlobKey,
    scope: DeleteScope,
    precondition: Precondition,
    /// Made before the container was read.
    noted: Arc<ChangeNote>,
}

async fn delete_one(
    front: &FrontEnd,
    container: &FoundContainer,
    one: One,
) -> Result<Deletion, Refusal> {
    let One { key, scope, precondition, noted } = one;
    front.load.rates.count(key.account, || front.env.clock.monotonic())?;
    let demanded = precondition.conditions.if_match.is_some();
    let guard = lookup::guard(precondition);
    let write = DeleteBlob { key, guard, scope };
    match commit::commit_deletion(&front.rows, container.clone(), write, noted).await {
        Ok(deletion) => Ok(deletion),
        Err(error) => match errors::from_index(&error, Subject::Blob) {
            Refusal { reason: Reason::BlobNotFound, .. } if demanded => {
                Err(Reason::NothingToMatch.into())
            }
            Refusal { reason: Reason::BlobNotFound | Reason::VersionNotFound, .. } => {
                Ok(Deletion::default())
            }
            refused => Err(refused),
        },
    }
}
