//! The refusals of sources.

use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::index;
use crate::protocol::model::Detail;
use crate::protocol::model::Hint;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::SourceRefusal;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::SourceConditions;

/// The status of a source that cannot be reached or whose answer ended early: clients try again.
pub(super) const UNREACHABLE: u16 = 500;

/// The refusal of the source as the answer of the copy: the source's status under the copy's code.
pub(in crate::frontend) fn explain(refusal: Refusal) -> Refusal {
    let Refusal { reason, status, .. } = refusal;
    if matches!(reason, Reason::ConditionNotMet | Reason::NotModified) {
        return unmet(reason);
    }
    let own = [Reason::ServerBusy, Reason::InvalidRange, Reason::SourceConditionNotMet];
    if own.contains(&reason) {
        return refusal;
    }
    let source = Some(SourceRefusal { reason, status });
    Refusal { source, message: refusal.message, ..Refusal::new(Reason::CannotVerifyCopySource) }
}

/// The refusal of a source that does not meet a condition, for [`of_operation`].
pub(super) fn unmet(reason: Reason) -> Refusal {
    let source = Some(SourceRefusal { reason, status: None });
    Refusal { source, ..Refusal::new(Reason::SourceConditionNotMet) }
}

/// The refusal of a source as its operation answers it. Source: recorded answers of the service
/// (2021-08-06); for Copy Blob also "Specifying conditional headers for Blob service operations".
pub(super) fn of_operation(refusal: Refusal, source: &CopySource) -> Refusal {
    let is_part = source.purpose == CopyPurpose::Part;
    if refusal.reason == Reason::SourceConditionNotMet {
        let conditions = &source.conditions;
        let only_tags =
            SourceConditions { if_tags: conditions.if_tags.clone(), ..Default::default() };
        let is_of_tags = conditions.if_tags.is_some() && *conditions == only_tags;
        return match source.purpose {
            CopyPurpose::Copy { .. } if is_of_tags => Reason::ConditionNotMet.into(),
            CopyPurpose::Copy { .. } => Reason::SourceConditionNotMet.into(),
            CopyPurpose::Blob if conditions.if_match.is_some() && !is_unmodified(&refusal) => {
                Reason::SourceConditionNotMet.into()
            }
            CopyPurpose::Part | CopyPurpose::Blob => {
                let hint = is_part.then_some(Hint::SourceOfPart);
                let reason = Reason::CannotVerifyCopySource;
                Refusal { hint, source: refusal.source, ..Refusal::new(reason) }
            }
        };
    }
    let hint = match refusal.hint {
        None if is_part && was_asked(&refusal) => Some(Hint::SourceOfPart),
        hint => hint,
    };
    Refusal { hint, ..refusal }
}

/// Whether the source was asked and refused.
fn was_asked(refusal: &Refusal) -> bool {
    let answered = |(detail, _): &(Detail, String)| *detail == Detail::SourceStatus;
    refusal.source.is_some() || refusal.details.iter().any(answered)
}

/// Whether the source is as the client has it already.
fn is_unmodified(refusal: &Refusal) -> bool {
    refusal.source.is_some_and(|source| source.reason == Reason::NotModified)
}

/// Turns the refusal of a source in this store into the answer of the copy. Only failed conditions
/// of the source have a reason of their own; other refusals stay as they are.
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
