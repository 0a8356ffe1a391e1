//! The operations, a file per family. Each resolves the container first, as the service does.

pub(crate) mod acl;
pub(crate) mod appends;
pub(crate) mod batch;
pub(crate) mod blobs;
pub(crate) mod blocks;
pub(crate) mod containers;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod delegation;
pub(crate) mod encryption;
pub(crate) mod find;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod pages;
pub(crate) mod service_properties;
pub(crate) mod tags;
#[cfg(test)]
mod tests;
pub(crate) mod versions;

use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::service::FrontEnd;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::BlobRecord;
use crate::index::ContainerRecord;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::index::Guard;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Write;
use crate::index::WriteReply;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Precondition;
use crate::protocol::copy::CopyFacts;
use crate::protocol::copy::CopyState;
use crate::protocol::operation::BlobPath;
use crate::protocol::reply::BlobFacts;
use crate::protocol::reply::Change;
use crate::protocol::reply::ContainerFacts;
use crate::protocol::reply::LeaseFacts;
use crate::protocol::reply::TierFacts;
use crate::types::BlobKey;
use crate::types::BlobKind;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Looks a container up.
pub(crate) async fn container(
    front: &FrontEnd,
    account: &Account,
    name: &ContainerName,
) -> Result<ContainerRecord, Error> {
    let key = RoutingKey::container(account.id, name);
    let read = Read::Container(account.id, name.clone());
    match front.router.read(key.as_bytes(), read).await {
        Ok(ReadReply::Container(record)) => Ok(*record),
        Ok(_) => Err(mismatched()),
        Err(error) => Err(errors::from_index(&error, Subject::Container)),
    }
}

/// The key of a blob; its container must exist.
pub(crate) async fn blob_key(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
) -> Result<BlobKey, Error> {
    let record = container(front, account, &path.container).await?;
    Ok(key_in(account, &record, path.blob))
}

/// [`blob_key`] of a request that makes content: its encryption is settled with the container.
pub(crate) async fn content_key(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: &mut Precondition,
) -> Result<BlobKey, Error> {
    let record = container(front, account, &path.container).await?;
    encryption::settle(&record, precondition)?;
    Ok(key_in(account, &record, path.blob))
}

fn key_in(account: &Account, container: &ContainerRecord, name: BlobName) -> BlobKey {
    let (account, id, collation) = (account.id, container.id, container.collation);
    BlobKey { account, container: id, collation, name }
}

/// Commits a row change in a task of its own, so that a client that leaves cannot stop it half-way,
/// then lets go of the bytes it refers to: for good when the rows refer to them, else they are
/// freed.
pub(crate) async fn commit(
    front: &FrontEnd,
    write: Write,
    stored: Option<Stored>,
) -> Result<WriteReply, index::Error> {
    let router = std::sync::Arc::clone(&front.router);
    // Before the request can end: the purge of a deleted container waits for both.
    let commit = front.inflight.commit();
    let task = front.env.tasks.spawn_part("commit", async move {
        let _commit = commit;
        let committing = stored.map(Stored::committing);
        let answer = router.write(write).await;
        let may_refer = matches!(answer, Ok(_) | Err(index::Error::Unavailable(_)));
        if let (false, Some(committing)) = (may_refer, committing) {
            committing.refused();
        }
        answer
    });
    task.await.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())))
}

/// As [`commit`], of a change that refers to no bytes that were stored for it; the task holds what
/// must last until the change was answered.
pub(crate) async fn commit_holding<G: Send + 'static>(
    front: &FrontEnd,
    write: Write,
    holding: G,
) -> Result<WriteReply, index::Error> {
    let router = std::sync::Arc::clone(&front.router);
    let commit = front.inflight.commit();
    let task = front.env.tasks.spawn_part("commit", async move {
        let answer = router.write(write).await;
        drop((holding, commit));
        answer
    });
    task.await.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())))
}

/// [`commit`] of a change of a blob.
pub(crate) async fn commit_blob(
    front: &FrontEnd,
    write: Write,
    stored: Option<Stored>,
) -> Result<Change, Error> {
    changed(commit(front, write, stored).await, Subject::Blob)
}

pub(crate) fn changed(
    answer: Result<WriteReply, index::Error>,
    subject: Subject,
) -> Result<Change, Error> {
    match answer {
        Ok(WriteReply::Written(w)) => Ok(Change { etag: w.etag, last_modified: w.last_modified }),
        Ok(_) => Err(mismatched()),
        Err(error) => Err(errors::from_index(&error, subject)),
    }
}

pub(crate) fn guard(precondition: Precondition) -> Guard {
    let encryption = encryption::claim(&precondition.encryption);
    Guard {
        conditions: precondition.conditions,
        lease: precondition.lease,
        if_tags: precondition.if_tags,
        encryption,
    }
}

/// What clients see of a container now.
pub(crate) fn container_facts(record: ContainerRecord, now: Timestamp) -> ContainerFacts {
    ContainerFacts {
        change: Change { etag: record.etag, last_modified: record.last_modified },
        lease: LeaseFacts::at(now, record.lease.as_ref()),
        metadata: record.metadata,
        public_access: record.public_access,
        encryption_scope: record.encryption_scope,
    }
}

/// What clients see of a blob now.
pub(crate) fn facts(front: &FrontEnd, record: BlobRecord, now: Timestamp) -> Box<BlobFacts> {
    let change = Change { etag: record.etag, last_modified: record.last_modified };
    Box::new(BlobFacts {
        last_access: front.last_access.as_ref().and_then(|_| record.last_access()),
        lease: LeaseFacts::at(now, record.lease.as_ref()),
        kind: record.kind,
        tier: (record.kind == BlobKind::Block).then(|| TierFacts::at(now, record.tier.as_ref())),
        properties: record.properties,
        metadata: record.metadata,
        tags: record.tags,
        copy: record.copy.map(|copy| Box::new(copied(*copy))),
        encryption: record.encryption,
        ..BlobFacts::new(change, record.created, record.len)
    })
}

/// What clients see of a copy.
fn copied(copy: CopyRecord) -> CopyFacts {
    CopyFacts {
        id: copy.id,
        source: copy.source,
        state: match copy.status {
            CopyStatus::Pending => CopyState::Pending,
            CopyStatus::Success => CopyState::Success,
            CopyStatus::Aborted => CopyState::Aborted,
            CopyStatus::Failed => CopyState::Failed,
        },
        description: copy.description,
        copied: copy.copied,
        total: copy.total,
        completed: copy.completed,
    }
}

/// The index answered another question than it was asked: a bug, told as one.
pub(crate) fn mismatched() -> Error {
    tracing::error!("the index answered with the wrong kind of reply");
    ErrorCode::InternalError.into()
}
