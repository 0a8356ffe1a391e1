//! Commits changes of rows, also when the client disconnects.

use std::sync::Arc;

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::rows::RowAccess;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::Containers;
use crate::index::FoundContainer;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::WriteRequest;
use crate::index::Written;
use crate::index::inflight::ChangeGuard;
use crate::protocol::model::Refusal;
use crate::protocol::model::reply::Change;

/// Commits a change of rows. It runs in a task of its own, so that a client that disconnects cannot
/// stop it half-way. If the index refuses the change, the stored bytes are freed.
pub(crate) async fn commit<W: WriteRequest>(
    rows: &RowAccess,
    write: W,
    stored: Option<Stored>,
) -> Result<W::Reply, index::Error> {
    commit_into(rows, None, write, stored).await
}

/// As [`commit`], for a write into a container. It reads the container again first: what was
/// deleted while the body arrived takes no write, and what may be deleted now is waited for.
pub(crate) async fn commit_into<W: WriteRequest>(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    write: W,
    stored: Option<Stored>,
) -> Result<W::Reply, index::Error> {
    commit_write(rows, container, write.into(), stored).await.and_then(W::checked)
}

async fn commit_write(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    write: Write,
    stored: Option<Stored>,
) -> Result<WriteReply, index::Error> {
    let containers = Arc::clone(&rows.containers);
    // Registered before the request can end: the purge of a deleted container waits for both.
    let commit = rows.inflight.commit();
    let task = rows.tasks.spawn_part("commit", async move {
        let committing = stored.map(Stored::committing);
        let (answer, may_refer) = match enter(&containers, commit, container).await {
            Ok(_commit) => {
                let answer = containers.router.write(write).await;
                let may_refer = matches!(answer, Ok(_) | Err(index::Error::Unavailable(_)));
                (answer, may_refer)
            }
            Err(error) => (Err(error), false),
        };
        if let (false, Some(committing)) = (may_refer, committing) {
            committing.refused();
        }
        answer
    });
    task.await.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())))
}

async fn enter(
    containers: &Containers,
    commit: ChangeGuard,
    container: Option<FoundContainer>,
) -> Result<ChangeGuard, index::Error> {
    match container {
        Some(found) => containers.enter(commit, &found).await,
        None => Ok(commit),
    }
}

/// As [`commit`], for a change without newly stored bytes. `holding` is kept until the change is
/// answered.
pub(crate) async fn commit_holding<W: WriteRequest, G: Send + 'static>(
    rows: &RowAccess,
    write: W,
    holding: G,
) -> Result<W::Reply, index::Error> {
    commit_into_holding(rows, None, write, holding).await
}

/// As [`commit_into`] and [`commit_holding`].
pub(crate) async fn commit_into_holding<W: WriteRequest, G: Send + 'static>(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    write: W,
    holding: G,
) -> Result<W::Reply, index::Error> {
    let containers = Arc::clone(&rows.containers);
    let (commit, write) = (rows.inflight.commit(), write.into());
    let task = rows.tasks.spawn_part("commit", async move {
        let answer = match enter(&containers, commit, container).await {
            Ok(_commit) => containers.router.write(write).await,
            Err(error) => Err(error),
        };
        drop(holding);
        answer
    });
    let answer = task.await;
    let answer = answer.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())));
    answer.and_then(W::checked)
}

/// As [`commit`], for a change of a blob.
pub(crate) async fn commit_blob<W: WriteRequest<Reply = Written>>(
    rows: &RowAccess,
    write: W,
    stored: Option<Stored>,
) -> Result<Change, Refusal> {
    changed(commit(rows, write, stored).await, Subject::Blob)
}

/// The reply to a change.
pub(crate) fn changed(
    answer: Result<Written, index::Error>,
    subject: Subject,
) -> Result<Change, Refusal> {
    match answer {
        Ok(w) => Ok(Change { etag: w.etag, last_modified: w.last_modified }),
        Err(error) => Err(errors::from_index(&error, subject)),
    }
}
