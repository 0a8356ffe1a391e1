//! The commit of a batch of requests, its outcome, and the answers when it fails.

use std::time::Duration;

use crate::coordinator::api::Error;

use super::file::Store;
use super::request::Answer;
use super::request::Batch;
use super::request::Commit;
use super::request::Of;
use super::request::Request;

/// The outcome of a batch, as far as the next ones depend on it.
pub(super) enum Done {
    /// Rows changed: there was room.
    Changed,
    /// The disk was full. All callers got that answer, and the file is open again.
    Full(Error),
    /// No row changed, or the file failed.
    Nothing,
}

impl Store {
    /// Applies a batch in one durable commit, then answers watches and callers. A failure before
    /// the commit has changed nothing, and the answers say so. Whether a failed commit happened is
    /// known if the file opens again at once.
    pub(super) fn commit(&self, now: Duration, batch: Vec<Request>) -> Done {
        let mut answers = Vec::with_capacity(batch.len());
        let mut requests = batch.into_iter();
        let mut commit = None;
        let batch = Batch { requests: &mut requests, answers: &mut answers, commit: &mut commit };
        let applied = match self.with(|database| self.apply(database, now, batch)) {
            Ok(events) => {
                self.history().publish(events);
                Ok(())
            }
            // Watches are told to read again once the file is open again.
            Err(error) => commit.and_then(|one| self.settle(now, one)).unwrap_or(Err(error)),
        };
        let is_open = self.failure().is_none();
        let done = match &applied {
            Ok(()) if commit.is_some() => Done::Changed,
            Err(error) if error.is_full() && is_open => Done::Full(error.clone()),
            Ok(()) | Err(_) => Done::Nothing,
        };
        match applied {
            Ok(()) => {}
            Err(error) => {
                for answer in &mut answers {
                    let is_end = answer.of == Of::End;
                    let is_unclear = is_end && matches!(error, Error::Unavailable { .. });
                    answer.what = Err(if is_unclear { Error::Ambiguous } else { error.clone() });
                }
                for request in requests {
                    match request {
                        Request::Txn { reply: to, .. } => {
                            answers.push(Answer { to, of: Of::Txn, what: Err(error.clone()) });
                        }
                        Request::End { reply: Some(to), .. } => {
                            answers.push(Answer { to, of: Of::End, what: Err(error.clone()) });
                        }
                        Request::Open { ttl, reply } => {
                            reply.send(self.sessions().open(now, ttl)).ok();
                        }
                        Request::End { reply: None, .. } => {}
                    }
                }
            }
        }
        for Answer { to, what, .. } in answers {
            // A caller that went away needs no answer.
            to.send(what).ok();
        }
        done
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
