//! Conditional requests: the `If-*` family, decided without I/O.
//!
//! Rules: Blob REST "Specifying conditional headers for Blob service operations".

use serde::Deserialize;
use serde::Serialize;

use crate::types::ContentEtag;
use crate::types::Etag;
use crate::types::Timestamp;

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EtagMatch {
    /// `*`
    Any,
    /// One or more tags. `None` is a tag that this server never returns, so it matches nothing.
    Tags(Vec<Option<Etag>>),
    /// Tags of content. One that this server never returns is left out; an empty list matches
    /// nothing.
    Content(Vec<ContentEtag>),
    /// `*` in the `If-None-Match` of a write that brings a lease id: the holder of the lease may
    /// replace the blob. Source: recorded answers of Put Blob and Put Blob From URL (2021-08-06);
    /// the other writes of whole blobs go with them.
    AnyUnleased,
}

impl EtagMatch {
    fn matches(&self, current: &Validators) -> bool {
        match self {
            Self::Any | Self::AnyUnleased => true,
            Self::Tags(tags) => tags.contains(&Some(current.etag)),
            Self::Content(tags) => current.content_etag.is_some_and(|tag| tags.contains(&tag)),
        }
    }
}

/// The values with which conditions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators {
    /// The tag of the last change.
    pub etag: Etag,
    /// The tag of the content; `None` for a container.
    pub content_etag: Option<ContentEtag>,
    /// The time of the last change.
    pub last_modified: Timestamp,
    /// The length of the content, bytes; `None` for a container.
    pub len: Option<u64>,
    /// When the access tier was set; `None` if it never was.
    pub tier_changed: Option<Timestamp>,
}

impl Validators {
    fn is_after(&self, time: Timestamp) -> bool {
        self.last_modified.whole_seconds() > time
    }

    fn is_tier_after(&self, time: Timestamp) -> bool {
        self.tier_changed.is_some_and(|changed| changed.whole_seconds() > time)
    }

    fn is_at(&self, time: Timestamp) -> bool {
        self.last_modified.whole_seconds() == time.whole_seconds()
    }
}

/// How a read combines a tag with the date that belongs to it. A write is always decided by the
/// tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pairing {
    /// Both count: `If-Match` and `If-Unmodified-Since` must hold, and one of `If-None-Match` and
    /// `If-Modified-Since`. Source: Blob REST, as below.
    #[default]
    Both,
    /// The tag decides, and the date is ignored. Source: RFC 9110, 13.2.2.
    TagFirst,
}

/// The conditions of one request, dates at whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Proceed if the current tag is one of these.
    pub if_match: Option<EtagMatch>,
    /// Proceed if the current tag is none of these.
    pub if_none_match: Option<EtagMatch>,
    /// Proceed if changed after.
    pub if_modified_since: Option<Timestamp>,
    /// Proceed if not changed after.
    pub if_unmodified_since: Option<Timestamp>,
    /// Proceed if last changed in this second. Writes only; what does not exist passes. Source:
    /// S3, DeleteObject, `x-amz-if-match-last-modified-time`.
    pub if_modified_at: Option<Timestamp>,
    /// Proceed if the content has this length, bytes. Writes only; what does not exist passes.
    /// Source: S3, DeleteObject, `x-amz-if-match-size`.
    pub if_len: Option<u64>,
    /// Proceed if the access tier was set after. Writes only; what does not exist passes. Source:
    /// Delete Blob, `x-ms-access-tier-if-modified-since`.
    pub if_tier_modified_since: Option<Timestamp>,
    /// Proceed if the access tier was not set after. Writes only; what does not exist passes.
    /// Source: Delete Blob, `x-ms-access-tier-if-unmodified-since`.
    pub if_tier_unmodified_since: Option<Timestamp>,
    /// How tags and dates are combined.
    pub pairing: Pairing,
}

/// The result of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Proceed with the request.
    Proceed,
    /// 412 ConditionNotMet.
    Failed,
    /// 304 (reads only).
    NotModified,
    /// 409 BlobAlreadyExists: a create with `If-None-Match: *` met an existing blob (writes only).
    AlreadyExists,
    /// A write with `If-Match` met nothing (writes only). Azure: 412 ConditionNotMet. S3: 404
    /// NoSuchKey.
    NothingToMatch,
}

impl Conditions {
    /// Whether no condition was given.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let Self {
            if_match,
            if_none_match,
            if_modified_since,
            if_unmodified_since,
            if_modified_at,
            if_len,
            if_tier_modified_since,
            if_tier_unmodified_since,
            pairing: _,
        } = self;
        if_modified_at.is_none()
            && if_len.is_none()
            && if_tier_modified_since.is_none()
            && if_tier_unmodified_since.is_none()
            && if_match.is_none()
            && if_none_match.is_none()
            && if_modified_since.is_none()
            && if_unmodified_since.is_none()
    }

    /// Decides for a read of something that exists.
    #[must_use]
    pub fn check_read(&self, current: &Validators) -> Outcome {
        let matches = self.if_match.as_ref().map(|m| m.matches(current));
        let unmodified = self.if_unmodified_since.map(|t| !current.is_after(t));
        let differs = self.if_none_match.as_ref().map(|m| !m.matches(current));
        let modified = self.if_modified_since.map(|t| current.is_after(t));
        let (proceeds, is_new) = match self.pairing {
            Pairing::Both => (
                matches.unwrap_or(true) && unmodified.unwrap_or(true),
                match (differs, modified) {
                    (None, None) => true,
                    (differs, modified) => differs.unwrap_or(false) || modified.unwrap_or(false),
                },
            ),
            Pairing::TagFirst => {
                (matches.or(unmodified).unwrap_or(true), differs.or(modified).unwrap_or(true))
            }
        };
        match (proceeds, is_new) {
            (false, _) => Outcome::Failed,
            (true, false) => Outcome::NotModified,
            (true, true) => Outcome::Proceed,
        }
    }

    /// Decides for a write. `current` is `None` if the blob does not exist: then `If-Match` fails,
    /// and the other conditions pass. If both a tag and its paired date are given, the tag decides.
    #[must_use]
    pub fn check_write(&self, current: Option<&Validators>) -> Outcome {
        let Some(current) = current else {
            return if self.if_match.is_some() {
                Outcome::NothingToMatch
            } else {
                Outcome::Proceed
            };
        };
        if self.if_modified_at.is_some_and(|time| !current.is_at(time))
            || self.if_len.is_some_and(|len| current.len != Some(len))
            || self.if_tier_modified_since.is_some_and(|time| !current.is_tier_after(time))
            || self.if_tier_unmodified_since.is_some_and(|time| current.is_tier_after(time))
        {
            return Outcome::Failed;
        }
        match (&self.if_none_match, self.if_modified_since) {
            (Some(EtagMatch::Any | EtagMatch::AnyUnleased), _) => return Outcome::AlreadyExists,
            (Some(tags), _) if tags.matches(current) => return Outcome::Failed,
            (None, Some(t)) if !current.is_after(t) => return Outcome::Failed,
            _ => {}
        }
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) if !tags.matches(current) => Outcome::Failed,
            (None, Some(t)) if current.is_after(t) => Outcome::Failed,
            _ => Outcome::Proceed,
        }
    }
}

#[cfg(test)]
mod tests;
