//! Why durable work failed.

use crate::capacity;
use crate::coordinator;
use crate::coordinator::Reason;
use crate::index::api::{Error, Full};
use crate::index::engine::failure;
use crate::index::invariant::Violation;

/// Why durable work failed, by what follows for the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing was written for want of room; may work later.
    Full(Full),
    /// Nothing has changed: the coordinator or a disk refused. May work later.
    Refused(String),
    /// Nothing has changed: others of the partition were quicker, or must finish first. Works later.
    Busy(&'static str),
    /// Another owner has the partition.
    Fenced,
    /// It may or may not have been written.
    Other(Reason),
}

impl Failed {
    /// The coordinator refused: surely nothing has changed.
    pub(crate) fn refused(error: &coordinator::Error) -> Self {
        if error.is_full() {
            Self::unread(failure::coordinator(error))
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// Something could not be read that is needed before anything is changed.
    pub(crate) fn unread(error: Error) -> Self {
        if let Error::Full(full) = error {
            Self::Full(full)
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// The coordinator did not say whether something has changed, and cannot be asked now.
    pub(crate) fn unknown(error: &coordinator::Error) -> Self {
        let text = error.to_string();
        Self::Other(if error.is_full() { Reason::full(text) } else { text.into() })
    }

    /// What is told of a partition that does not open. The next try reads what came of this one.
    pub(crate) fn of_opening(self) -> Error {
        match self {
            Self::Fenced => Error::WrongPartition,
            Self::Full(_) | Self::Refused(_) | Self::Busy(_) | Self::Other(_) => {
                self.before_it_counts().into()
            }
        }
    }

    /// The failure of a step that nothing refers to yet: whatever came of it, the partition is as
    /// it was.
    pub(crate) fn before_it_counts(self) -> Self {
        match self {
            Self::Full(full) => Self::Full(full),
            Self::Refused(reason) => Self::Refused(reason),
            Self::Busy(reason) => Self::Busy(reason),
            Self::Other(reason) if reason.is_full() => {
                Self::Full(Full::Coordinator(reason.to_string()))
            }
            Self::Other(reason) => Self::Refused(reason.to_string()),
            Self::Fenced => Self::Refused("the extent is another owner's".into()),
        }
    }
}

/// The partition stops: what is durable has to be read again.
impl From<Violation> for Failed {
    fn from(violation: Violation) -> Self {
        Self::Other(violation.to_string().into())
    }
}

impl From<capacity::Error> for Failed {
    fn from(error: capacity::Error) -> Self {
        match error {
            capacity::Error::Full => Self::Full(Full::Disks),
            capacity::Error::Fenced { .. } => Self::Fenced,
            capacity::Error::Sealed { .. }
            | capacity::Error::WrongOffset { .. }
            | capacity::Error::NoSuchExtent { .. }
            | capacity::Error::Corrupt { .. }
            | capacity::Error::Poisoned { .. }
            | capacity::Error::Ended { .. }
            | capacity::Error::Unreadable { .. }
            | capacity::Error::OutOfService { .. } => Self::Other(error.to_string().into()),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Full(full) => Self::Full(full),
            Failed::Fenced => Self::WrongPartition,
            Failed::Refused(reason) => Self::Unavailable(reason),
            Failed::Busy(reason) => Self::Unavailable(reason.to_owned()),
            Failed::Other(reason) => Self::Unavailable(reason.to_string()),
        }
    }
}
