//! The lines of one request, while it runs.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::env::Clock;

/// The lines of one request, while it runs. They are written when this is dropped, also when the
/// client disconnects.
#[derive(Debug)]
pub(in crate::frontend) struct Draft {
    log: AuditLog,
    clock: Arc<dyn Clock>,
    /// When the request arrived, by the monotonic clock.
    begun: Duration,
    entry: Entry,
    /// The change that the request makes, until its line is written.
    change: Option<Change>,
    /// The length of the answer, once it is known.
    answer: Option<u64>,
}

/// The answer to a request.
#[derive(Clone, Copy)]
pub(in crate::frontend) struct AnswerFacts<'a> {
    pub(in crate::frontend) status: StatusCode,
    /// Its error code.
    pub(in crate::frontend) code: Option<&'a str>,
    /// The length of its body.
    pub(in crate::frontend) bytes: u64,
}

impl Draft {
    /// A draft of a request that arrived at `begun`, by the monotonic clock.
    pub(super) fn new(log: AuditLog, clock: Arc<dyn Clock>, begun: Duration, entry: Entry) -> Self {
        Self { log, clock, begun, entry, change: None, answer: None }
    }

    /// The same about this account.
    pub(in crate::frontend) fn of_account(mut self, account: Option<String>) -> Self {
        self.entry.account = account;
        self
    }

    /// Records the resource of the request, if its URL spells it differently.
    pub(in crate::frontend) fn about(&mut self, resource: Option<String>) {
        self.entry.resource = resource;
    }

    /// Records the sender, the operation and, if it has a line, the change that it will make. This
    /// precedes the change, because the client may disconnect at any time.
    pub(in crate::frontend) fn asked(
        &mut self,
        operation: &'static str,
        principal: Principal,
        change: Option<Change>,
    ) {
        self.entry.operation = operation.into();
        self.entry.principal = principal;
        self.change = change;
    }

    /// Records the answer, and writes the line of a change unless the request was refused: then it
    /// changed nothing. After a failure the outcome is unknown, so there is a line.
    pub(in crate::frontend) async fn answered(
        &mut self,
        operation: &'static str,
        principal: Principal,
        bytes_in: u64,
        answer: AnswerFacts<'_>,
    ) {
        let status = answer.status;
        self.refused(answer);
        self.entry.bytes_in = bytes_in;
        self.entry.operation = operation.into();
        self.entry.principal = principal;
        self.take_time();
        let Some(change) = self.change.take() else { return };
        if status.is_success() || status.is_server_error() {
            self.log.change(&self.entry, &change).await;
        }
    }

    /// Records the answer to a request that changes nothing.
    pub(in crate::frontend) fn refused(&mut self, answer: AnswerFacts<'_>) {
        let AnswerFacts { status, code, bytes } = answer;
        self.answer = Some(bytes);
        self.entry.status = Some(status.as_u16());
        self.entry.code = code.map(str::to_owned);
    }

    /// Counts bytes of the answer that were sent.
    pub(in crate::frontend) const fn sent(&mut self, bytes: u64) {
        self.entry.bytes_out += bytes;
    }

    /// An answer of unknown length was sent completely.
    pub(in crate::frontend) const fn ended(&mut self) {
        self.answer = Some(self.entry.bytes_out);
    }

    fn take_time(&mut self) {
        let took = self.clock.monotonic().saturating_sub(self.begun);
        self.entry.ms = (took.as_secs_f64() * 1e6).round() / 1e3;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.take_time();
        self.entry.cut = self.answer.is_none_or(|bytes| self.entry.bytes_out < bytes);
        if let Some(change) = self.change.take() {
            self.log.change_now(&self.entry, &change);
        }
        self.log.request(&self.entry);
    }
}
