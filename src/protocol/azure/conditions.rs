//! The `If-*` headers, by the kind of operation.
//!
//! Source: Blob REST "Specifying conditional headers for Blob service operations".

use http::HeaderMap;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::azure::tags;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Precondition;
use crate::protocol::wire::conditions::conditions;
use crate::protocol::wire::conditions::date;
use crate::protocol::wire::conditions::has_several;
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
    let mut conditions = conditions(all)?;
    let lease = headers::lease(all)?;
    let for_unchanged = conditions.if_match.is_some() || conditions.if_unmodified_since.is_some();
    let for_changed = conditions.if_none_match.is_some() || conditions.if_modified_since.is_some();
    if has_several(all, &IF_MATCH)
        || has_several(all, &IF_NONE_MATCH)
        || (for_unchanged && for_changed)
    {
        return Err(Reason::MultipleConditionHeadersNotSupported.into());
    }
    if lease.is_some() && conditions.if_none_match == Some(EtagMatch::Any) {
        conditions.if_none_match = Some(EtagMatch::AnyUnleased);
    }
    Ok(Precondition {
        conditions,
        lease,
        if_tags: tags::condition(all)?,
        ..Precondition::default()
    })
}

/// Conditions and lease of Delete Blob: also on the time at which the access tier was set.
pub(super) fn delete(all: &HeaderMap) -> Result<Precondition, Refusal> {
    let mut precondition = write(all)?;
    let conditions = &mut precondition.conditions;
    conditions.if_tier_modified_since = date(all, &names::TIER_IF_MODIFIED_SINCE)?;
    conditions.if_tier_unmodified_since = date(all, &names::TIER_IF_UNMODIFIED_SINCE)?;
    if conditions.if_tier_modified_since.is_some() && conditions.if_tier_unmodified_since.is_some()
    {
        return Err(Reason::MultipleConditionHeadersNotSupported.into());
    }
    Ok(precondition)
}

/// Conditions and lease of Get and Set Blob Tags, whose conditions on the blob have names of their
/// own. They stand for those of other operations, which count where they are absent.
pub(super) fn of_tags(
    all: &HeaderMap,
    read_as: fn(&HeaderMap) -> Result<Precondition, Refusal>,
) -> Result<Precondition, Refusal> {
    let own = [
        (&names::BLOB_IF_MATCH, IF_MATCH),
        (&names::BLOB_IF_NONE_MATCH, IF_NONE_MATCH),
        (&names::BLOB_IF_MODIFIED_SINCE, IF_MODIFIED_SINCE),
        (&names::BLOB_IF_UNMODIFIED_SINCE, IF_UNMODIFIED_SINCE),
    ];
    if !own.iter().any(|(name, _)| all.contains_key(*name)) {
        return read_as(all);
    }
    let mut merged = all.clone();
    for (name, plain) in own {
        if all.contains_key(name) {
            merged.remove(&plain);
        }
        for value in all.get_all(name) {
            merged.append(plain.clone(), value.clone());
        }
    }
    read_as(&merged)
}

/// The lease and the condition on tags of Set Blob Tier, which takes no other conditions.
pub(super) fn of_tier(all: &HeaderMap) -> Result<Precondition, Refusal> {
    let conditions = conditions(all)?;
    if !conditions.is_empty() {
        return Err(Reason::ConditionHeadersNotSupported.into());
    }
    let (lease, if_tags) = (headers::lease(all)?, tags::condition(all)?);
    Ok(Precondition { conditions, lease, if_tags, ..Precondition::default() })
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
