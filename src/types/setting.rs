//! Settings of containers that have rows of their own.

use serde::{Deserialize, Serialize};

use crate::types::TagsError;
use crate::types::tags;

/// The most tags of one container.
const CONTAINER_TAGS_MAX: usize = 50;

/// The kinds of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SettingKind {
    /// Tags of the container itself.
    Tags,
    /// Rules of cross-origin requests.
    Cors,
}

impl SettingKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Tags, Self::Cors];

    /// The number in the keys of rows.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tags => 1,
            Self::Cors => 2,
        }
    }

    /// The kind of that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A setting of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setting {
    /// Tags of the container itself.
    Tags(ContainerTags),
    /// Rules of cross-origin requests, in the order in which they are tried.
    Cors(Vec<CrossOriginRule>),
}

impl Setting {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> SettingKind {
        match self {
            Self::Tags(_) => SettingKind::Tags,
            Self::Cors(_) => SettingKind::Cors,
        }
    }

    /// Bytes that its texts and rules take in memory, not less.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Tags(tags) => {
                tags.iter().map(|(key, value)| 2 * TEXT + key.len() + value.len()).sum()
            }
            Self::Cors(rules) => rules.iter().map(CrossOriginRule::weight).sum(),
        }
    }
}

/// Bytes that a text takes in memory beside its own.
const TEXT: usize = size_of::<String>() + 16;

/// Key/value pairs of a container, each key once, in the order given. Source: S3, "Using cost
/// allocation S3 bucket tags".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, String)>")]
pub struct ContainerTags(Vec<(String, String)>);

impl ContainerTags {
    /// Checks the number, lengths and characters of tags.
    ///
    /// # Errors
    /// [`TagsError`].
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, TagsError> {
        if pairs.len() > CONTAINER_TAGS_MAX {
            return Err(TagsError::TooMany);
        }
        tags::check(&pairs)?;
        Ok(Self(pairs))
    }

    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl TryFrom<Vec<(String, String)>> for ContainerTags {
    type Error = TagsError;

    fn try_from(pairs: Vec<(String, String)>) -> Result<Self, TagsError> {
        Self::new(pairs)
    }
}

/// A rule of cross-origin requests to one container. Source: S3, `CORSRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossOriginRule {
    /// The name that its author gave it.
    pub id: Option<String>,
    /// Origins; each may have one `*`.
    pub origins: Vec<String>,
    /// Methods.
    pub methods: Vec<String>,
    /// Request headers; each may have one `*`.
    pub headers: Vec<String>,
    /// Response headers that a script may read.
    pub exposed: Vec<String>,
    /// How many seconds a browser may cache the answer to a preflight request.
    pub max_age: Option<u32>,
}

impl CrossOriginRule {
    fn weight(&self) -> usize {
        let Self { id, origins, methods, headers, exposed, max_age: _ } = self;
        let lists = [origins, methods, headers, exposed];
        let texts = lists.into_iter().flatten().chain(id);
        size_of::<Self>() + 4 * TEXT + texts.map(|text| TEXT + text.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_numbers_of_their_own() {
        for kind in SettingKind::ALL {
            assert_eq!(SettingKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(SettingKind::from_number(0), None);
        assert_eq!(SettingKind::from_number(3), None);
    }

    #[test]
    fn a_container_has_at_most_fifty_tags_of_different_keys() {
        let tags = |count: usize| {
            ContainerTags::new((0..count).map(|n| (format!("k{n}"), String::new())).collect())
        };
        assert!(tags(50).is_ok());
        assert_eq!(tags(51), Err(TagsError::TooMany));
        let pair = |key: &str| (key.to_owned(), "v".to_owned());
        assert_eq!(ContainerTags::new(vec![pair("a"), pair("a")]), Err(TagsError::Duplicate));
        let ordered = ContainerTags::new(vec![pair("b"), pair("a")]).unwrap();
        assert_eq!(ordered.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a"]);
    }
}
