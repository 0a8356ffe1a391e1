//! The lines of one request in the making.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::env::Clock;

/// The lines of one request in the making. They are written when it is dropped, so that a request
/// whose client leaves has them too.
#[derive(Debug)]
pub(in crate::frontend) struct Draft {
    log: AuditLog,
    clock: Arc<dyn Clock>,
    /// By the monotonic clock.
    begun: Duration,
    entry: Entry,
    /// The change that it makes, until its line is written.
    change: Option<Change>,
    /// Bytes of the answer, once it is known.
    answer: Option<u64>,
}

impl Draft {
    /// A draft of a request that came at `begun`, by the monotonic clock.
    pub(super) fn new(log: AuditLog, clock: Arc<dyn Clock>, begun: Duration, entry: Entry) -> Self {
        Self { log, clock, begun, entry, change: None, answer: None }
    }

    /// Notes who asks for what, and the change that it is about to make, if it is one that has a
    /// line. Done before the change, since the client may leave at any time.
    pub(super) fn asked(
        &mut self,
        operation: &'static str,
        principal: Principal,
        change: Option<Change>,
    ) {
        self.entry.operation = operation.into();
        self.entry.principal = principal;
        self.change = change;
    }

    /// Takes what is known once there is an answer, and writes the line of a change: what was
    /// refused changed nothing, and of what failed nobody knows.
    pub(in crate::frontend) async fn answered(
        &mut self,
        (operation, principal): (&'static str, Principal),
        (bytes_in, bytes_out): (u64, u64),
        (status, code): (StatusCode, Option<&str>),
    ) {
        self.refused(bytes_out, (status, code));
        self.entry.bytes_in = bytes_in;
        self.entry.operation = operation.into();
        self.entry.principal = principal;
        self.take_time();
        let Some(change) = self.change.take() else { return };
        if status.is_success() || status.is_server_error() {
            self.log.change(&self.entry, &change).await;
        }
    }

    /// Takes what is known of an answer to a request that changes nothing.
    pub(in crate::frontend) fn refused(
        &mut self,
        bytes: u64,
        (status, code): (StatusCode, Option<&str>),
    ) {
        self.answer = Some(bytes);
        self.entry.status = Some(status.as_u16());
        self.entry.code = code.map(str::to_owned);
    }

    /// Counts bytes of the answer that were given out.
    pub(in crate::frontend) const fn sent(&mut self, bytes: u64) {
        self.entry.bytes_out += bytes;
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
