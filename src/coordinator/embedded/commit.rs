//! A commit, and what its callers are told when it fails.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::coordinator::api::Error;
use crate::coordinator::api::Revision;
use crate::coordinator::api::TxnReply;

use super::Request;
use super::file::Store;

pub(super) type Answer = (oneshot::Sender<Result<TxnReply, Error>>, Result<TxnReply, Error>);

/// The revisions before and after a commit.
#[derive(Clone, Copy)]
pub(super) struct Commit {
    pub(super) before: Revision,
    pub(super) after: Revision,
}

impl Store {
    /// Applies a batch in one durable commit, then tells watches and callers. What fails before the
    /// commit has changed nothing, and callers are told so; what becomes of a commit that fails is
    /// found out if the file opens again at once.
    pub(super) fn commit(&self, now: Duration, batch: Vec<Request>) {
        let mut answers = Vec::with_capacity(batch.len());
        let mut batch = batch.into_iter();
        let mut commit = None;
        let parts = (&mut batch, &mut answers, &mut commit);
        let applied = match self.with(|database| self.apply(database, now, parts)) {
            Ok(events) => {
                self.history().publish(events);
                Ok(())
            }
            // Whoever watches is told to read again when the file was opened again.
            Err(error) => commit.and_then(|one| self.settle(now, one)).unwrap_or(Err(error)),
        };
        match applied {
            Ok(()) => {}
            Err(error) => {
                for (_, answer) in &mut answers {
                    *answer = Err(error.clone());
                }
                for request in batch {
                    match request {
                        Request::Txn { reply, .. } | Request::End { reply: Some(reply), .. } => {
                            answers.push((reply, Err(error.clone())));
                        }
                        Request::Open { ttl, reply } => {
                            reply.send(self.sessions().open(now, ttl)).ok();
                        }
                        Request::End { reply: None, .. } => {}
                    }
                }
            }
        }
        for (reply, answer) in answers {
            // A caller that went away needs no answer.
            reply.send(answer).ok();
        }
    }

    /// Whether a commit that failed happened: opens the file again, after which nothing of the
    /// commit can come late. `None` while the file does not open.
    ///
    /// # Errors
    /// It did not happen, for this reason.
    fn settle(&self, now: Duration, commit: Commit) -> Option<Result<(), Error>> {
        let refusal = self.failure()?;
        let found = self.reopen(now).ok()?;
        if found == commit.before {
            Some(Err(refusal))
        } else {
            (found == commit.after).then_some(Ok(()))
        }
    }
}
