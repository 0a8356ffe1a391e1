//! What callers ask of the one task that commits, and what they are told.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::coordinator::api::Compare;
use crate::coordinator::api::Error;
use crate::coordinator::api::Op;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Session;
use crate::coordinator::api::TxnReply;

/// What the writer does for callers.
pub(super) enum Request {
    Txn { when: Vec<Compare>, then: Vec<Op>, reply: oneshot::Sender<Result<TxnReply, Error>> },
    Open { ttl: Duration, reply: oneshot::Sender<Session> },
    End { session: Session, reply: Option<oneshot::Sender<Result<TxnReply, Error>>> },
}

/// What a caller is told once the batch of its request is done.
pub(super) struct Answer {
    pub(super) to: oneshot::Sender<Result<TxnReply, Error>>,
    pub(super) of: Of,
    pub(super) what: Result<TxnReply, Error>,
}

/// What an answer is about.
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
