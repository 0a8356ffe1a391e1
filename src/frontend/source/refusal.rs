//! Why a source cannot be taken.

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::index;
use crate::protocol::Error;
use crate::protocol::ErrorCode;

/// The status of a source that cannot be reached or broke off: clients try again.
pub(super) const UNREACHABLE: u16 = 500;

/// The refusal of the source as the answer of the copy: the source's status under the copy's code.
pub(super) fn explain(error: Error) -> Error {
    let status = error.http_status();
    let code = error.code;
    if matches!(code, ErrorCode::ConditionNotMet | ErrorCode::NotModified) {
        return ErrorCode::SourceConditionNotMet.into();
    }
    let own = [ErrorCode::ServerBusy, ErrorCode::InvalidRange, ErrorCode::SourceConditionNotMet];
    if own.contains(&code) {
        return error;
    }
    let message = error.message.unwrap_or_else(|| code.message().to_owned());
    Error::new(ErrorCode::CannotVerifyCopySource)
        .status(status)
        .message(message)
        .detail("CopySourceStatusCode", status.to_string())
        .detail("CopySourceErrorCode", code.azure())
}

/// The index's refusal of a look-up of the source.
pub(super) fn of_index(error: &index::Error) -> Error {
    explain(errors::from_index(error, Subject::Blob))
}
