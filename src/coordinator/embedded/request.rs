//! Requests to the one task that commits, and its answers.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::coordinator::api::Compare;
use crate::coordinator::api::Error;
use crate::coordinator::api::Op;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Session;
use crate::coordinator::api::TxnReply;

/// A request to the task that commits.
pub(super) enum Request {
    Txn { when: Vec<Compare>, then: Vec<Op>, reply: oneshot::Sender<Result<TxnReply, Error>> },
    Open { ttl: Duration, reply: oneshot::Sender<Session> },
    End { session: Session, reply: Option<oneshot::Sender<Result<TxnReply, Error>>> },
}

/// The answer to a request, sent when its batch is done.
pub(super) struct Answer {
    pub(super) to: oneshot::Sender<Result<TxnReply, Error>>,
    pub(super) of: Of,
    pub(super) what: Result<TxnReply, Error>,
}

/// The kind of request that an answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Txn,
    /// A session is over as soon as its end is applied, and its rows go with the commit, or when
    /// the file is opened again.
    End,
}

/// The revisions before and after a commit.
#[derive(Clone, Copy)]
pub(super) struct Commit {
    pub(super) before: Revision,
    pub(super) after: Revision,
}

/// A batch while it is applied.
pub(super) struct Batch<'a> {
    /// Those that are not applied yet.
    pub(super) requests: &'a mut std::vec::IntoIter<Request>,
    /// Answers to those that are.
    pub(super) answers: &'a mut Vec<Answer>,
    /// What the commit changes, once it is tried.
    pub(super) commit: &'a mut Option<Commit>,
}
