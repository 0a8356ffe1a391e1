//! The `If-*` headers, by the kind of operation.
//!
//! Source: Blob REST "Specifying conditional headers for Blob service operations".

use http::HeaderMap;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::azure::tags;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Precondition;
use crate::protocol::wire::conditions::conditions;
use crate::types::EtagMatch;

/// Conditions and lease of a read: several tags are alternatives.
pub(super) fn read(all: &HeaderMap) -> Result<Precondition, Refusal> {
    let conditions = conditions(all)?;
    if conditions.if_none_match == Some(EtagMatch::Any) {
        return Err(Reason::UnsatisfiableCondition.into());
    }
    Ok(Precondition {
        conditions,
        lease: headers::lease(all)?,
        if_tags: tags::condition(all)?,
        ..Precondition::default()
    })
}

/// Conditions and lease of a write: one condition, or a tag with its paired date; one tag only.
pub(super) fn write(all: &HeaderMap) -> Result<Precondition, Refusal> {
    let conditions = conditions(all)?;
    let several = |m: &Option<EtagMatch>| matches!(m, Some(EtagMatch::Tags(t)) if t.len() > 1);
    let for_unchanged = conditions.if_match.is_some() || conditions.if_unmodified_since.is_some();
    let for_changed = conditions.if_none_match.is_some() || conditions.if_modified_since.is_some();
    if several(&conditions.if_match)
        || several(&conditions.if_none_match)
        || (for_unchanged && for_changed)
    {
        return Err(Reason::MultipleConditionHeadersNotSupported.into());
    }
    Ok(Precondition {
        conditions,
        lease: headers::lease(all)?,
        if_tags: tags::condition(all)?,
        ..Precondition::default()
    })
}

/// Which dates an operation without tags takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dates {
    /// None at all.
    None,
    /// `If-Modified-Since`.
    ModifiedSince,
    /// `If-Unmodified-Since`.
    UnmodifiedSince,
    /// One of the two.
    Either,
}

/// Conditions and lease of operations that take no tags: those on containers, and Put Block.
pub(super) fn dated(all: &HeaderMap, dates: Dates) -> Result<Precondition, Refusal> {
    let conditions = conditions(all)?;
    let (modified, unmodified) =
        (conditions.if_modified_since.is_some(), conditions.if_unmodified_since.is_some());
    let refused = match dates {
        Dates::None => modified || unmodified,
        Dates::ModifiedSince => unmodified,
        Dates::UnmodifiedSince => modified,
        Dates::Either => false,
    };
    let by_tags = all.contains_key(&names::IF_TAGS);
    if refused || by_tags || conditions.if_match.is_some() || conditions.if_none_match.is_some() {
        return Err(Reason::ConditionHeadersNotSupported.into());
    }
    if modified && unmodified {
        return Err(Reason::MultipleConditionHeadersNotSupported.into());
    }
    Ok(Precondition {
        conditions,
        lease: headers::lease(all)?,
        if_tags: tags::condition(all)?,
        ..Precondition::default()
    })
}
