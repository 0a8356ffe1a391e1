//! Conditional requests: the `If-*` family, decided without I/O.
//!
//! Rules: Blob REST "Specifying conditional headers for Blob service operations".

use serde::Deserialize;
use serde::Serialize;

use crate::types::{Etag, Timestamp};

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EtagMatch {
    /// `*`
    Any,
    /// One or more tags. `None` is a tag that this server never returns, so it matches nothing.
    Tags(Vec<Option<Etag>>),
}

impl EtagMatch {
    fn matches(&self, etag: Etag) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tags.contains(&Some(etag)),
        }
    }
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
}

impl Conditions {
    /// Whether no condition was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Decides for a read of something that exists with this tag and time of last change:
    /// `If-Match AND If-Unmodified-Since AND (If-None-Match OR If-Modified-Since)`.
    #[must_use]
    pub fn check_read(&self, etag: Etag, last_modified: Timestamp) -> Outcome {
        if self.if_match.as_ref().is_some_and(|m| !m.matches(etag))
            || self.if_unmodified_since.is_some_and(|t| last_modified.whole_seconds() > t)
        {
            return Outcome::Failed;
        }
        let differs = self.if_none_match.as_ref().map(|m| !m.matches(etag));
        let modified = self.if_modified_since.map(|t| last_modified.whole_seconds() > t);
        match (differs, modified) {
            (None, None) => Outcome::Proceed,
            (a, b) if a == Some(true) || b == Some(true) => Outcome::Proceed,
            _ => Outcome::NotModified,
        }
    }

    /// Decides for a write. `current` is `None` if the blob does not exist: then `If-Match` fails,
    /// and the other conditions pass. If both a tag and its paired date are given, the tag decides.
    #[must_use]
    pub fn check_write(&self, current: Option<(Etag, Timestamp)>) -> Outcome {
        let Some((etag, last_modified)) = current else {
            return if self.if_match.is_some() { Outcome::Failed } else { Outcome::Proceed };
        };
        match (&self.if_none_match, self.if_modified_since) {
            (Some(EtagMatch::Any), _) => return Outcome::AlreadyExists,
            (Some(tags), _) if tags.matches(etag) => return Outcome::Failed,
            (None, Some(t)) if last_modified.whole_seconds() <= t => return Outcome::Failed,
            _ => {}
        }
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) if !tags.matches(etag) => Outcome::Failed,
            (None, Some(t)) if last_modified.whole_seconds() > t => Outcome::Failed,
            _ => Outcome::Proceed,
        }
    }
}

#[cfg(test)]
mod tests;
