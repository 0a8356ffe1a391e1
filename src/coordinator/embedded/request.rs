//! Requests to the task that commits, and its answers.

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

/// The answer to a request. It is sent when the batch is done.
pub(super) struct Answer {
    pub(super) to: oneshot::Sender<Result<TxnReply, Error>>,
    pub(super) of: AnswerKind,
    pub(super) what: Result<TxnReply, Error>,
}

/// The kind of request that an answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Txn,
    /// The end of a session. The session has ended as soon as the request is applied. Its rows are
    /// removed by the commit, or when the file is opened again.
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
    /// Requests that are not applied yet.
    pub(super) requests: &'a mut std::vec::IntoIter<Request>,
    /// Answers to the applied requests.
    pub(super) answers: &'a mut Vec<Answer>,
    /// The revisions of the commit, once it is tried.
    pub(super) commit: &'a mut Option<Commit>,
}
