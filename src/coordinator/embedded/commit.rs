//! The commit of a batch of requests, its outcome, and the answers when it fails.

use std::time::Duration;

use crate::coordinator::api::Error;

use super::file::Store;
use super::request::Answer;
use super::request::AnswerKind;
use super::request::Batch;
use super::request::Commit;
use super::request::Request;

/// The outcome of a batch, as it matters to later batches.
pub(super) enum Done {
    /// Rows changed, so the disk had room.
    Changed,
    /// The disk was full. All callers got that error, and the file is open again.
    Full(Error),
    /// No row changed, or the file failed.
    Nothing,
}

impl Store {
    /// Applies a batch in one durable commit, then delivers the changes to watches and answers the
    /// callers. After a failure before the commit the answers say that nothing changed. After a
    /// failed commit the file is opened again; if that succeeds, it shows whether the commit was
    /// applied.
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
            // When the file is open again, watches get an error and read again.
            Err(error) => commit.and_then(|one| self.outcome(now, one)).unwrap_or(Err(error)),
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
                    let is_end = answer.of == AnswerKind::End;
                    let is_unclear = is_end && matches!(error, Error::Unavailable { .. });
                    answer.what = Err(if is_unclear { Error::Ambiguous } else { error.clone() });
                }
                for request in requests {
                    match request {
                        Request::Txn { reply: to, .. } => {
                            answers.push(Answer {
                                to,
                                of: AnswerKind::Txn,
                                what: Err(error.clone()),
                            });
                        }
                        Request::End { reply: Some(to), .. } => {
                            answers.push(Answer {
                                to,
                                of: AnswerKind::End,
                                what: Err(error.clone()),
                            });
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
            // A cancelled caller needs no answer.
            to.send(what).ok();
        }
        done
    }

    /// Opens the file again after a failed commit to find out whether the commit was applied. It
    /// cannot be applied later. `None` if the file does not open.
    ///
    /// # Errors
    /// The commit was not applied, for this reason.
    fn outcome(&self, now: Duration, commit: Commit) -> Option<Result<(), Error>> {
        let refusal = self.failure()?;
        let found = self.reopen(now).ok()?;
        if found == commit.before {
            Some(Err(refusal))
        } else {
            (found == commit.after).then_some(Ok(()))
        }
    }
}
