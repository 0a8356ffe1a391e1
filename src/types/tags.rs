//! Blob index tags.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most tags of one blob.
const TAGS_MAX: usize = 10;
/// The most characters of a key. A key has at least 1.
pub(super) const KEY_CHARS_MAX: usize = 128;
/// The most characters of a value. A value may be empty.
pub(super) const VALUE_CHARS_MAX: usize = 256;

/// Key/value pairs of a blob, sorted by key, each key once. Source: Set Blob Tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, String)>")]
pub struct Tags(Vec<(String, String)>);

/// Why tags are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TagsError {
    /// More than 10.
    #[error("a blob has at most 10 tags")]
    TooMany,
    /// A wrong length or a character that is not allowed.
    #[error("a tag key has 1 to 128, a value 0 to 256 letters, digits, spaces and + - . / : = _ @")]
    Invalid,
    /// A key is given twice.
    #[error("a tag key is given twice")]
    Duplicate,
}

impl Tags {
    /// Checks the number, lengths and characters of tags, and sorts them. The characters are those
    /// that any protocol allows (ADR 0030); a dialect checks its own rule.
    ///
    /// # Errors
    /// [`TagsError`].
    pub fn new(mut pairs: Vec<(String, String)>) -> Result<Self, TagsError> {
        if pairs.len() > TAGS_MAX {
            return Err(TagsError::TooMany);
        }
        check(&pairs)?;
        pairs.sort();
        Ok(Self(pairs))
    }

    /// The pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// The pairs that `other` does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let left = self.0.iter().filter(|(key, value)| other.get(key) != Some(value.as_str()));
        Self(left.cloned().collect())
    }

    /// The pairs whose keys are `wanted`.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(key, _)| wanted(key)).cloned().collect())
    }

    /// Number of tags; `x-ms-tag-count`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<(String, String)>> for Tags {
    type Error = TagsError;

    fn try_from(pairs: Vec<(String, String)>) -> Result<Self, TagsError> {
        Self::new(pairs)
    }
}

/// Checks lengths and characters of tags, and that no key comes twice.
pub(super) fn check(pairs: &[(String, String)]) -> Result<(), TagsError> {
    let fits = |text: &str, range: std::ops::RangeInclusive<usize>| {
        range.contains(&text.chars().count()) && text.chars().all(is_allowed)
    };
    let valid = |(key, value): &(String, String)| {
        fits(key, 1..=KEY_CHARS_MAX) && fits(value, 0..=VALUE_CHARS_MAX)
    };
    if !pairs.iter().all(valid) {
        return Err(TagsError::Invalid);
    }
    let mut keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.len() < pairs.len() { Err(TagsError::Duplicate) } else { Ok(()) }
}

/// Letters, digits and spaces of Unicode, and a few others. Source: S3, "Tagging objects"; Azure
/// allows fewer.
pub(super) fn is_allowed(c: char) -> bool {
    c.is_alphanumeric() || (c.is_whitespace() && !c.is_control()) || "+-./:=_@".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Result<Tags, TagsError> {
        Tags::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn tags_are_sorted_and_found() {
        let tags = tags(&[("b", "2"), ("a", "")]).unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("a", ""), ("b", "2")]);
        assert_eq!(tags.get("b"), Some("2"));
        assert_eq!(tags.get("c"), None);
    }

    #[test]
    fn tags_that_could_not_be_made_are_not_decoded() {
        let decode = |pairs: &[(&str, &str)]| {
            postcard::from_bytes::<Tags>(&postcard::to_stdvec(pairs).unwrap())
        };
        assert_eq!(
            decode(&[("b", "2"), ("a", "")]).unwrap(),
            tags(&[("a", ""), ("b", "2")]).unwrap()
        );
        assert!(decode(&[("", "2")]).is_err());
        assert!(decode(&[("a", "1"), ("a", "2")]).is_err());
    }

    #[test]
    fn what_the_service_refuses_is_refused() {
        assert_eq!(tags(&[("", "x")]), Err(TagsError::Invalid));
        assert_eq!(tags(&[("k", "a&b")]), Err(TagsError::Invalid));
        assert_eq!(tags(&[("k", "a\nb")]), Err(TagsError::Invalid));
        assert_eq!(tags(&[("k\0", "")]), Err(TagsError::Invalid));
        assert!(tags(&[("name@host", "Größe 5")]).is_ok());
        assert_eq!(tags(&[("k".repeat(129).as_str(), "")]), Err(TagsError::Invalid));
        assert_eq!(tags(&[("k", "v".repeat(257).as_str())]), Err(TagsError::Invalid));
        assert_eq!(tags(&[("k", "1"), ("k", "2")]), Err(TagsError::Duplicate));
        let many: Vec<String> = (0..11).map(|n| n.to_string()).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|k| (k.as_str(), "")).collect();
        assert_eq!(tags(&many), Err(TagsError::TooMany));
        assert!(tags(&many[..10]).is_ok());
    }
}
