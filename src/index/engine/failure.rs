//! Maps errors of the layers below to errors of the index.

use crate::capacity;
use crate::coordinator;
use crate::index::api::Damage;
use crate::index::api::{Error, Full};

/// The error of a failed read of rows that must exist.
pub(super) fn read(error: &capacity::Error) -> Error {
    match error {
        capacity::Error::Corrupt { .. } | capacity::Error::NoSuchExtent { .. } => {
            Error::damaged_rows(error.to_string())
        }
        capacity::Error::OutOfService { .. } => Error::Corrupt(Damage::DiskOut(error.to_string())),
        capacity::Error::Fenced { .. }
        | capacity::Error::Sealed { .. }
        | capacity::Error::WrongOffset { .. }
        | capacity::Error::Full
        | capacity::Error::Poisoned { .. }
        | capacity::Error::Ended { .. }
        | capacity::Error::NoAnswer { .. }
        | capacity::Error::Unreadable { .. } => Error::Unavailable(error.to_string()),
    }
}

/// The error of a failed write.
pub(super) fn write(error: &capacity::Error) -> Error {
    match error {
        capacity::Error::Full => Error::Full(Full::Disks),
        capacity::Error::Fenced { .. } => Error::WrongPartition,
        capacity::Error::OutOfService { .. } => Error::Corrupt(Damage::DiskOut(error.to_string())),
        capacity::Error::Corrupt { .. }
        | capacity::Error::NoSuchExtent { .. }
        | capacity::Error::Sealed { .. }
        | capacity::Error::WrongOffset { .. }
        | capacity::Error::Poisoned { .. }
        | capacity::Error::Ended { .. }
        | capacity::Error::NoAnswer { .. }
        | capacity::Error::Unreadable { .. } => Error::Unavailable(error.to_string()),
    }
}

/// The error of a failed call to the coordinator.
pub(super) fn coordinator(error: &coordinator::Error) -> Error {
    match error {
        coordinator::Error::Corrupt { .. } => Error::damaged_rows(error.to_string()),
        coordinator::Error::Unavailable { reason } if reason.is_full() => {
            Error::Full(Full::Coordinator(reason.to_string()))
        }
        coordinator::Error::Ambiguous
        | coordinator::Error::Unavailable { .. }
        | coordinator::Error::Compacted
        | coordinator::Error::SessionEnded => Error::Unavailable(error.to_string()),
    }
}
