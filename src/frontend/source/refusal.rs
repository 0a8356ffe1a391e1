//! The refusals of sources.

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::index;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::SourceRefusal;

/// The status of a source that cannot be reached or whose answer ended early: clients try again.
pub(super) const UNREACHABLE: u16 = 500;

/// The refusal of the source as the answer of the copy: the source's status under the copy's code.
pub(in crate::frontend) fn explain(refusal: Refusal) -> Refusal {
    let Refusal { reason, status, .. } = refusal;
    if matches!(reason, Reason::ConditionNotMet | Reason::NotModified) {
        return Reason::SourceConditionNotMet.into();
    }
    let own = [Reason::ServerBusy, Reason::InvalidRange, Reason::SourceConditionNotMet];
    if own.contains(&reason) {
        return refusal;
    }
    let source = Some(SourceRefusal { reason, status });
    Refusal { source, message: refusal.message, ..Refusal::new(Reason::CannotVerifyCopySource) }
}

/// The refusal of a source that is named, as the answer of the copy: only its conditions are told
/// apart from those of the destination.
pub(in crate::frontend) fn of_named(refusal: Refusal) -> Refusal {
    if matches!(refusal.reason, Reason::ConditionNotMet | Reason::NotModified) {
        return Reason::SourceConditionNotMet.into();
    }
    refusal
}

/// The refusal of a source whose look-up failed.
pub(super) fn of_index(error: &index::Error) -> Refusal {
    explain(errors::from_index(error, Subject::Blob))
}
