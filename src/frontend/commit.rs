//! Commits changes of rows, also when the client disconnects.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::env::Tasks;
use crate::env::boxed;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::rows::RowAccess;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::Containers;
use crate::index::DeleteBlob;
use crate::index::Deleted;
use crate::index::Entered;
use crate::index::FoundContainer;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::WriteRequest;
use crate::index::Written;
use crate::index::inflight::ChangeNote;
use crate::protocol::model::Refusal;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::Deletion;
use crate::types::RoutingKey;

/// Commits a change of rows. It runs in a task of its own, so that a client that disconnects cannot
/// stop it half-way. If the index refuses the change, the stored bytes are freed.
pub(crate) async fn commit<W: WriteRequest>(
    rows: &RowAccess,
    write: W,
    stored: Option<Stored>,
) -> Result<W::Reply, index::Error> {
    commit_into(rows, None, write, stored).await
}

/// As [`commit`], for a write into a container. It reads the container again first: a container
/// that was deleted while the body arrived takes no write, and a deletion in progress is waited
/// for.
pub(crate) async fn commit_into<W: WriteRequest>(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    write: W,
    stored: Option<Stored>,
) -> Result<W::Reply, index::Error> {
    commit_write(rows, container, Arc::new(write.into()), stored).await.and_then(W::checked)
}

async fn commit_write(
    rows: &RowAccess,
    container: Option<FoundContainer>,
    mut write: Arc<Write>,
    stored: Option<Stored>,
) -> Result<WriteReply, index::Error> {
    let (containers, tasks) = (Arc::clone(&rows.containers), rows.tasks.clone());
    // Noted before the request can end: the purge of a deleted container waits for requests and
    // commits.
    let commit = rows.inflight.commit();
    // Boxed: spawning a task moves its future several times.
    let work = boxed(move || async move {
        let committing = stored.map(Stored::committing);
        let (answer, is_refused) = match enter(&containers, commit, container).await {
            Ok(entered) => {
                let commit = entered.prepare(&mut write);
                let answer = containers.router.write_shared(Arc::clone(&write)).await;
                if is_in_doubt(&answer) {
                    settle_later(&tasks, &containers, write, (commit, committing));
                    return answer;
                }
                let is_refused = answer.is_err();
                (answer, is_refused)
            }
            Err(error) => (Err(error), true),
        };
        if let (true, Some(committing)) = (is_refused, committing) {
            committing.refused();
        }
        answer
    });
    let task = rows.tasks.spawn_part("commit", work);
    task.await.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())))
}

/// A commit that may begin.
enum MayCommit {
    /// It does not depend on a container.
    Alone(ChangeNote),
    /// The container was read again.
    Into(Entered),
}

impl MayCommit {
    /// Passes the container's settings to the write, which nothing else refers to yet. The note is
    /// kept until the commit is answered.
    fn prepare(self, write: &mut Arc<Write>) -> ChangeNote {
        match self {
            Self::Alone(note) => note,
            Self::Into(Entered { note, protection }) => {
                debug_assert_eq!(Arc::strong_count(write), 1, "else the whole write is copied");
                Arc::make_mut(write).set_protection(protection);
                note
            }
        }
    }
}

/// Whether a change may have been made, or may still be made.
const fn is_in_doubt(answer: &Result<WriteReply, index::Error>) -> bool {
    matches!(answer, Err(index::Error::Unavailable(_) | index::Error::NoAnswer(_)))
}

/// Keeps what a change in doubt needs until no partition can make it any more: an audit must not
/// free its bytes, nor a purge believe that it has ended.
fn settle_later(
    tasks: &Tasks,
    containers: &Arc<Containers>,
    write: Arc<Write>,
    needed: impl Send + 'static,
) {
    let (containers, key) = (Arc::clone(containers), RoutingKey::from_bytes(write.routing_key()));
    drop(write);
    let settling = async move {
        if containers.router.settle(key).await {
            drop(needed);
        } else {
            // The program stops. Until its session ends, others must know what it needs.
            let _kept = ManuallyDrop::new(needed);
        }
    };
    drop(tasks.spawn_part("settle a change in doubt", settling));
}

async fn enter(
    containers: &Containers,
    commit: ChangeNote,
    container: Option<FoundContainer>,
) -> Result<MayCommit, index::Error> {
    match container {
        Some(found) => containers.enter(commit, &found).await.map(MayCommit::Into),
        None => Ok(MayCommit::Alone(commit)),
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
    let (containers, tasks) = (Arc::clone(&rows.containers), rows.tasks.clone());
    let (commit, mut write) = (rows.inflight.commit(), Arc::new(write.into()));
    // Boxed: spawning a task moves its future several times.
    let work = boxed(move || async move {
        let answer = match enter(&containers, commit, container).await {
            Ok(entered) => {
                let commit = entered.prepare(&mut write);
                let answer = containers.router.write_shared(Arc::clone(&write)).await;
                if is_in_doubt(&answer) {
                    settle_later(&tasks, &containers, write, (commit, holding));
                    return answer;
                }
                answer
            }
            Err(error) => Err(error),
        };
        drop(holding);
        answer
    });
    let answer = rows.tasks.spawn_part("commit", work).await;
    let answer = answer.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string())));
    answer.and_then(W::checked)
}

/// As [`commit`], for the deletion of a blob. `noted` was made before the container was read, so a
/// change of its versioning waits for this commit. Only if versions are kept, a deletion makes a
/// row that an empty container must not have. The container is then read again, as for other
/// writes.
pub(crate) async fn commit_deletion<G: Send + 'static>(
    rows: &RowAccess,
    container: FoundContainer,
    write: DeleteBlob,
    noted: G,
) -> Result<Deletion, index::Error> {
    let deleted = match write.guard.protection.versioning {
        Some(_) => commit_into_holding(rows, Some(container), write, ()).await,
        None => commit_holding(rows, write, noted).await,
    };
    let Deleted { version, is_marker, is_kept } = deleted?;
    Ok(Deletion { version, is_marker, is_kept })
}

/// As [`commit`], for a change of a blob.
pub(crate) async fn commit_blob<W: WriteRequest<Reply = Written>>(
    rows: &RowAccess,
    write: W,
    stored: Option<Stored>,
) -> Result<Change, Refusal> {
    changed(commit(rows, write, stored).await, Subject::Blob)
}

/// The facts of a change that clients see.
pub(crate) const fn change(written: Written) -> Change {
    let Written { etag, last_modified, version } = written;
    Change { etag, last_modified, version }
}

/// The reply to a change.
pub(crate) fn changed(
    answer: Result<Written, index::Error>,
    subject: Subject,
) -> Result<Change, Refusal> {
    match answer {
        Ok(w) => Ok(change(w)),
        Err(error) => Err(errors::from_index(&error, subject)),
    }
}
