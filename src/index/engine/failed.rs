//! Why durable work failed.

use crate::capacity;
use crate::coordinator;
use crate::coordinator::Reason;
use crate::index::api::{Error, Full};
use crate::index::engine::failure;
use crate::index::invariant::Violation;

/// Why a change is refused when others of the partition keep changing its record of extents.
pub const RECORD_CHANGES: &str = "the record of extents keeps changing";
/// Why a change is refused when others of the partition took the recorded ids first.
pub const NO_EXTENT_ID: &str = "the partition has no recorded extent id left";

/// Why durable work failed, classified by the consequence for the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing was written for lack of space. A later try may succeed.
    Full(Full),
    /// Nothing has changed: the coordinator or a disk refused. A later try may succeed.
    Refused(String),
    /// Nothing has changed: another task of the partition was faster, or must finish first. A later
    /// try succeeds.
    Busy(&'static str),
    /// Another owner has the partition.
    Fenced,
    /// The outcome is unknown: the change may or may not be durable.
    Other(Reason),
}

impl Failed {
    /// The coordinator refused, and nothing has changed.
    pub(crate) fn refused(error: &coordinator::Error) -> Self {
        if error.is_full() {
            Self::unread(failure::coordinator(error))
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// A read failed that must come before the change. Nothing has changed.
    pub(crate) fn unread(error: Error) -> Self {
        if let Error::Full(full) = error {
            Self::Full(full)
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// The coordinator did not say whether something has changed, and does not answer now.
    pub(crate) fn unknown(error: &coordinator::Error) -> Self {
        let text = error.to_string();
        Self::Other(if error.is_full() { Reason::full(text) } else { text.into() })
    }

    /// The error of a partition that does not open. The next try reads the outcome of this one.
    pub(crate) fn of_opening(self) -> Error {
        match self {
            Self::Fenced => Error::WrongPartition,
            Self::Full(_) | Self::Refused(_) | Self::Busy(_) | Self::Other(_) => {
                self.before_it_counts().into()
            }
        }
    }

    /// The failure of a step whose result nothing refers to yet. Whatever its outcome, the
    /// partition is unchanged.
    pub(crate) fn before_it_counts(self) -> Self {
        match self {
            Self::Full(full) => Self::Full(full),
            Self::Refused(reason) => Self::Refused(reason),
            Self::Busy(reason) => Self::Busy(reason),
            Self::Other(reason) if reason.is_full() => {
                Self::Full(Full::Coordinator(reason.to_string()))
            }
            Self::Other(reason) => Self::Refused(reason.to_string()),
            Self::Fenced => Self::Refused("the extent belongs to another owner".into()),
        }
    }
}

/// A violated invariant stops the partition; its durable state must be read again.
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
            | capacity::Error::NoAnswer { .. }
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
