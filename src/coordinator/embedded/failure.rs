//! What went wrong with the file, and what callers and the operator are told of it.

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

/// Why the file has to be opened again: after an I/O error the library works no more, and what it
/// has in memory is no longer known to be what is on disk.
#[derive(Debug, Default)]
pub(super) struct Failure {
    why: Mutex<Option<Error>>,
    /// Rung when it has failed.
    pub(super) rung: Notify,
}

impl Failure {
    /// What everybody is told meanwhile.
    pub(super) fn get(&self) -> Option<Error> {
        self.lock().clone()
    }

    /// The file failed.
    pub(super) fn set(&self, path: &Path, error: Error) {
        let mut why = self.lock();
        if why.is_some() {
            return;
        }
        // At once: nobody is to use the file before it is opened again.
        *why = Some(refusal(path, &error));
        drop(why);
        self.rung.notify_one();
        // Without the lock: a disk that hangs keeps no caller of `get` waiting.
        let error = told(path, error);
        // Of a full disk the task that commits tells, which knows what was said before.
        if !error.is_full() {
            let (path, reason) = (path.display(), reason(&error));
            tracing::error!(%path, reason, "the coordinator's file failed; it is opened again");
        }
        if let Some(why) = self.lock().as_mut().filter(|_| error.is_full()) {
            *why = refusal(path, &error);
        }
    }

    /// It did not open again. Of a full disk everybody is told the latest amount, and nobody is
    /// told of one once there is another reason.
    pub(super) fn tried_again(&self, path: &Path, error: Error) -> Error {
        let error = told(path, error);
        let mut why = self.lock();
        if error.is_full() || why.as_ref().is_some_and(Error::is_full) {
            *why = Some(refusal(path, &error));
        }
        drop(why);
        error
    }

    /// The file is open again. Returns what everybody was told before.
    pub(super) fn clear(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the amount to the failure of a full disk.
pub(super) fn told(path: &Path, error: Error) -> Error {
    if !error.is_full() {
        return error;
    }
    let Ok(free) = free_bytes(path) else { return error };
    let reason = format!("its disk or quota is full; {free} bytes are free on the disk");
    Error::Unavailable { reason: Reason::full(reason) }
}

/// What is answered after this failure until the file is open again.
fn refusal(path: &Path, error: &Error) -> Error {
    let (path, reason) = (path.display(), reason(error));
    let text = format!("{path} failed ({reason}) and is opened again");
    let reason = if error.is_full() { Reason::full(text) } else { text.into() };
    Error::Unavailable { reason }
}

/// The error without what goes without saying here.
fn reason(error: &Error) -> String {
    match error {
        Error::Unavailable { reason } => reason.to_string(),
        Error::Ambiguous | Error::Compacted | Error::SessionEnded | Error::Corrupt { .. } => {
            error.to_string()
        }
    }
}

/// A failed call of the file.
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
