//! Errors of capacity in answers.

use serde::Deserialize;
use serde::Serialize;

use crate::capacity::Error;
use crate::rpc::CallError;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Why a member did not carry out a call. The variants are those of [`Error`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CallFailed {
    Sealed { extent: ExtentId },
    Fenced { extent: ExtentId, epoch: Epoch },
    WrongOffset { extent: ExtentId, expected: ExtentOffset },
    NoSuchExtent { extent: ExtentId },
    Corrupt { extent: ExtentId, offset: ExtentOffset },
    Full,
    Poisoned { disk: u64 },
    Ended,
    OutOfService { extent: ExtentId },
    Unreadable { extent: ExtentId, reason: String },
    NoAnswer { reason: String },
}

impl From<Error> for CallFailed {
    fn from(error: Error) -> Self {
        match error {
            Error::Sealed { extent } => Self::Sealed { extent },
            Error::Fenced { extent, epoch } => Self::Fenced { extent, epoch },
            Error::WrongOffset { extent, expected } => Self::WrongOffset { extent, expected },
            Error::NoSuchExtent { extent } => Self::NoSuchExtent { extent },
            Error::Corrupt { extent, offset } => Self::Corrupt { extent, offset },
            Error::Full => Self::Full,
            Error::Poisoned { disk } => Self::Poisoned { disk: crate::capacity::units::size(disk) },
            Error::Ended { .. } => Self::Ended,
            // It asks the coordinator.
            Error::NoAnswer { reason } => Self::NoAnswer { reason },
            Error::OutOfService { extent } => Self::OutOfService { extent },
            Error::Unreadable { extent, reason } => Self::Unreadable { extent, reason },
        }
    }
}

impl From<CallFailed> for Error {
    fn from(failed: CallFailed) -> Self {
        match failed {
            CallFailed::Sealed { extent } => Self::Sealed { extent },
            CallFailed::Fenced { extent, epoch } => Self::Fenced { extent, epoch },
            CallFailed::WrongOffset { extent, expected } => Self::WrongOffset { extent, expected },
            CallFailed::NoSuchExtent { extent } => Self::NoSuchExtent { extent },
            CallFailed::Corrupt { extent, offset } => Self::Corrupt { extent, offset },
            CallFailed::Full => Self::Full,
            CallFailed::Poisoned { disk } => {
                Self::Poisoned { disk: crate::capacity::units::index(disk) }
            }
            CallFailed::Ended => Self::Ended { doing: "call of another node" },
            CallFailed::OutOfService { extent } => Self::OutOfService { extent },
            CallFailed::Unreadable { extent, reason } => Self::Unreadable { extent, reason },
            CallFailed::NoAnswer { reason } => Self::NoAnswer { reason },
        }
    }
}

/// A call that has no answer. Every call of a member may be repeated, so it does not matter whether
/// it was carried out.
impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        use crate::rpc::{Reason, Refusal};
        let never = matches!(
            error,
            CallError::NotDone(
                Reason::TooLarge | Reason::Refused(Refusal::UnknownMethod | Refusal::Malformed)
            )
        );
        if never {
            tracing::error!(%error, "a node takes no such call; a repetition fails too");
        }
        Self::NoAnswer { reason: error.to_string() }
    }
}
