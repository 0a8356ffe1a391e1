//! Commits changes of rows, also when the client disconnects.

use std::sync::Arc;

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::rows::RowAccess;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::WriteRequest;
use crate::index::Written;
use crate::protocol::model::Refusal;
use crate::protocol::model::reply::Change;

/// Commits a change of rows. It runs in a task of its own, so that a client that disconnects cannot
/// stop it half-way. If the index refuses the change, the stored bytes are freed.
pub(crate) async fn commit<W: WriteRequest>(
    rows: &RowAccess,
    write: W,
    stored: Option<Stored>,
) -> Result<W::Reply, index::Error> {
    commit_write(rows, write.into(), stored).await.and_then(W::checked)
}

async fn commit_write(
    rows: &RowAccess,
    write: Write,
    stored: Option<Stored>,
) -> Result<WriteReply, index::Error> {
    let router = Arc::clone(&rows.router);
    // Registered before the request can end: the purge of a deleted container waits for both.
    let commit = rows.inflight.commit();
    let task = rows.tasks.spawn_part("commit", async move {
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

/// As [`commit`], for a change without newly stored bytes. `holding` is kept until the change is
/// answered.
pub(crate) async fn commit_holding<W: WriteRequest, G: Send + 'static>(
    rows: &RowAccess,
    write: W,
    holding: G,
) -> Result<W::Reply, index::Error> {
    let router = Arc::clone(&rows.router);
    let (commit, write) = (rows.inflight.commit(), write.into());
    let task = rows.tasks.spawn_part("commit", async move {
        let answer = router.write(write).await;
        drop((holding, commit));
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
