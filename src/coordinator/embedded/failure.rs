//! The failure of the file: the errors of callers, and the log lines for the operator.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::coordinator::api::Error;
use crate::coordinator::api::Reason;
use crate::env::free_bytes;

/// Why the file has to be opened again. After an I/O error redb refuses further work, and its pages
/// in memory may differ from those on disk.
#[derive(Debug, Default)]
pub(super) struct Failure {
    why: Mutex<Option<Error>>,
    /// Notified when the file has failed.
    pub(super) raised: Notify,
}

impl Failure {
    /// The error of all calls until the file is open again.
    pub(super) fn get(&self) -> Option<Error> {
        self.lock().clone()
    }

    /// Notes that the file failed, unless it already has.
    pub(super) fn set(&self, path: &Path, error: Error) {
        let mut why = self.lock();
        if why.is_some() {
            return;
        }
        // Set first: no call may use the file before it is opened again.
        *why = Some(refusal(path, &error));
        drop(why);
        self.raised.notify_one();
        // Without the lock, so that callers of `get` do not wait for a disk that hangs.
        let error = with_free_bytes(path, error);
        // The task that commits logs a full disk. It knows when that was logged last.
        if !error.is_full() {
            let (path, reason) = (path.display(), reason(&error));
            tracing::error!(
                %path, reason,
                "the coordinator's file failed and is opened again; calls are refused until it \
                 is open"
            );
        }
        if let Some(why) = self.lock().as_mut().filter(|_| error.is_full()) {
            *why = refusal(path, &error);
        }
    }

    /// Notes that the file did not open again. Updates the error of callers if the disk is full,
    /// with the free bytes, or if it was full and the reason is another one now.
    pub(super) fn tried_again(&self, path: &Path, error: Error) -> Error {
        let error = with_free_bytes(path, error);
        let mut why = self.lock();
        if error.is_full() || why.as_ref().is_some_and(Error::is_full) {
            *why = Some(refusal(path, &error));
        }
        drop(why);
        error
    }

    /// Notes that the file is open again. Returns the error that callers got before.
    pub(super) fn clear(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the free bytes to the error of a full disk.
pub(super) fn with_free_bytes(path: &Path, error: Error) -> Error {
    if !error.is_full() {
        return error;
    }
    let Ok(free) = free_bytes(path) else { return error };
    let reason = format!("its disk or quota is full; {free} bytes are free on the disk");
    Error::Unavailable { reason: Reason::full(reason) }
}

/// The error of all calls after this failure, until the file is open again.
fn refusal(path: &Path, error: &Error) -> Error {
    let (path, reason) = (path.display(), reason(error));
    let text = format!("{path} failed ({reason}) and is opened again");
    let reason = if error.is_full() { Reason::full(text) } else { text.into() };
    Error::Unavailable { reason }
}

/// The error without the words that all errors of an unavailable coordinator have.
fn reason(error: &Error) -> String {
    match error {
        Error::Unavailable { reason } => reason.to_string(),
        Error::Ambiguous | Error::Compacted | Error::SessionEnded | Error::Corrupt { .. } => {
            error.to_string()
        }
    }
}

/// The error of a failed I/O call.
pub(super) fn io(error: &std::io::Error) -> Error {
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let text = error.to_string();
    Error::Unavailable { reason: if is_full { Reason::full(text) } else { text.into() } }
}

pub(super) fn unavailable(reason: impl fmt::Display) -> Error {
    Error::Unavailable { reason: reason.to_string().into() }
}

pub(super) fn corrupt(reason: impl fmt::Display) -> Error {
    Error::Corrupt { reason: reason.to_string() }
}
