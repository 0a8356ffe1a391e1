//! Conditions on blob index tags: `x-ms-if-tags` and the `where` of Find Blobs by Tags.
//!
//! Source: "Specify conditional headers (tags)", "Find Blobs by Tags". AND binds more tightly than
//! OR. Tag values are compared as strings, byte by byte.

use std::collections::BTreeSet;
use std::collections::HashSet;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::types::ContainerName;
use crate::types::Tags;
use crate::types::tags::KEY_CHARS_MAX;
use crate::types::tags::VALUE_CHARS_MAX;
use crate::types::tags::is_allowed;

/// The most bytes of an expression, as many as the head of a request may have.
const BYTES_MAX: usize = 16 * 1024;
/// The most tags in a search.
const TAGS_MAX: usize = 10;
/// The most characters that a message quotes.
const QUOTED_MAX: usize = 32;

/// Why an expression is refused, in the words of the service where they are known (recorded in
/// public threads).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TagFilterError {
    /// Something in it.
    #[error("Error parsing query at or near character position {at}: {fault}")]
    At {
        /// The character, counted from 1.
        at: usize,
        /// A description of the problem there.
        fault: TagFault,
    },
    /// A search for more than 10 different tags.
    #[error("Error parsing query: there can be at most 10 unique tags in a query")]
    TooManyTags,
    /// `@container` in a search that is within a container anyway.
    #[error("Error parsing query: Cannot have container in both uri and query")]
    ContainerTwice,
    /// Two bounds on the same side of one tag.
    #[error("Error parsing query: tag '{0}' has two bounds on the same side")]
    SameSide(String),
    /// A search without a condition on a tag would be a scan.
    #[error("Error parsing query: the query names no tag")]
    NoTag,
}

/// A fault at one position of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TagFault {
    /// It does not follow the grammar from this text on.
    #[error("unexpected '{0}'")]
    Unexpected(String),
    /// A search has no `<>`.
    #[error("unexpected <>")]
    NotEqual,
    /// A search has no `OR`.
    #[error("unexpected or")]
    Or,
    /// A name with `@` that is not supported in this place.
    #[error("unsupported parameter '{0}'")]
    Parameter(String),
    /// A key of no character or of more than 128.
    #[error("tag must be between 1 and 128 characters in length")]
    KeyLength,
    /// A value of more than 256 characters.
    #[error("tag value must be between 0 and 256 characters in length")]
    ValueLength,
    /// A character that no tag has.
    #[error("'{0}' not permitted in tag name or value")]
    Character(char),
}

/// How a tag's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`. A missing tag satisfies no comparison.
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

impl Comparison {
    /// The sign.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
        }
    }
}

/// One condition on one tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagClause {
    /// The tag.
    pub key: String,
    /// How they are compared.
    pub comparison: Comparison,
    /// The value to compare with.
    pub value: String,
}

impl TagClause {
    /// Whether these tags satisfy it.
    #[must_use]
    pub fn matches(&self, tags: &Tags) -> bool {
        let (found, value) = (tags.get(&self.key), self.value.as_str());
        match self.comparison {
            Comparison::Equal => found == Some(value),
            Comparison::NotEqual => found.is_some_and(|found| found != value),
            Comparison::Greater => found.is_some_and(|found| found > value),
            Comparison::GreaterOrEqual => found.is_some_and(|found| found >= value),
            Comparison::Less => found.is_some_and(|found| found < value),
            Comparison::LessOrEqual => found.is_some_and(|found| found <= value),
        }
    }
}

/// A condition on a blob's tags: all clauses of one of several groups must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<TagClause>>")]
pub struct TagCondition(Vec<Vec<TagClause>>);

impl TagCondition {
    /// Parses an `x-ms-if-tags` expression. Keys and values may have any length.
    ///
    /// # Errors
    /// [`TagFilterError::At`].
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let mut groups = vec![Vec::new()];
        let mut reader = Reader::new(text)?;
        loop {
            let at = reader.at();
            match reader.clause()? {
                Clause::Tag(clause) => groups.last_mut().map(|group| group.push(clause)),
                Clause::Container(_) => {
                    let fault = TagFault::Parameter("@container".to_owned());
                    return Err(TagFilterError::At { at, fault });
                }
            };
            match reader.joint()? {
                None => return Ok(Self(groups)),
                Some(Joint::And) => {}
                Some(Joint::Or) => groups.push(Vec::new()),
            }
        }
    }

    /// All clauses of all groups.
    pub fn clauses(&self) -> impl Iterator<Item = &TagClause> {
        self.0.iter().flatten()
    }

    /// Whether these tags satisfy it.
    #[must_use]
    pub fn matches(&self, tags: &Tags) -> bool {
        self.0.iter().any(|group| group.iter().all(|clause| clause.matches(tags)))
    }
}

impl TryFrom<Vec<Vec<TagClause>>> for TagCondition {
    type Error = TagFilterError;

    /// # Errors
    /// [`TagFilterError::NoTag`]: a group without clauses would be satisfied by everything.
    fn try_from(groups: Vec<Vec<TagClause>>) -> Result<Self, TagFilterError> {
        let has_tags = |group: &Vec<TagClause>| {
            !group.is_empty() && group.iter().all(|clause| !clause.key.is_empty())
        };
        if !groups.is_empty() && groups.iter().all(has_tags) {
            Ok(Self(groups))
        } else {
            Err(TagFilterError::NoTag)
        }
    }
}

/// A search. All clauses must hold, and there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    /// Only in this container.
    pub container: Option<ContainerName>,
    /// Conditions on tags, without [`Comparison::NotEqual`].
    pub clauses: Vec<TagClause>,
}

impl TagQuery {
    /// Parses a `where` expression.
    ///
    /// # Errors
    /// [`TagFilterError`], but for [`TagFilterError::ContainerTwice`].
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let mut query = Self { container: None, clauses: Vec::new() };
        let mut reader = Reader::new(text)?;
        loop {
            let at = reader.at();
            let refused = |fault| TagFilterError::At { at, fault };
            match reader.clause()? {
                Clause::Container(_) if query.container.is_some() => {
                    return Err(refused(TagFault::Unexpected("@container".to_owned())));
                }
                Clause::Container(name) => query.container = Some(name),
                Clause::Tag(TagClause { comparison: Comparison::NotEqual, .. }) => {
                    return Err(refused(TagFault::NotEqual));
                }
                Clause::Tag(clause) => {
                    check_lengths(&clause).map_err(refused)?;
                    query.clauses.push(clause);
                }
            }
            let at = reader.at();
            match reader.joint()? {
                None => break,
                Some(Joint::And) => {}
                Some(Joint::Or) => return Err(TagFilterError::At { at, fault: TagFault::Or }),
            }
        }
        query.check()?;
        Ok(query)
    }

    fn check(&self) -> Result<(), TagFilterError> {
        if self.clauses.is_empty() {
            return Err(TagFilterError::NoTag);
        }
        let keys: BTreeSet<&str> = self.clauses.iter().map(|clause| clause.key.as_str()).collect();
        if keys.len() > TAGS_MAX {
            return Err(TagFilterError::TooManyTags);
        }
        let mut sides = HashSet::new();
        let bounds = self.clauses.iter().filter_map(|clause| Some((&clause.key, side(clause)?)));
        for (key, side) in bounds {
            if !sides.insert((key, side)) {
                return Err(TagFilterError::SameSide(key.clone()));
            }
        }
        Ok(())
    }

    /// Whether these tags satisfy all clauses.
    #[must_use]
    pub fn matches(&self, tags: &Tags) -> bool {
        self.clauses.iter().all(|clause| clause.matches(tags))
    }
}

/// The side on which a clause bounds a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Lower,
    Upper,
}

const fn side(clause: &TagClause) -> Option<Side> {
    match clause.comparison {
        Comparison::Greater | Comparison::GreaterOrEqual => Some(Side::Lower),
        Comparison::Less | Comparison::LessOrEqual => Some(Side::Upper),
        Comparison::Equal | Comparison::NotEqual => None,
    }
}

fn check_lengths(clause: &TagClause) -> Result<(), TagFault> {
    if !(1..=KEY_CHARS_MAX).contains(&clause.key.chars().count()) {
        return Err(TagFault::KeyLength);
    }
    if clause.value.chars().count() > VALUE_CHARS_MAX {
        return Err(TagFault::ValueLength);
    }
    Ok(())
}

enum Clause {
    Tag(TagClause),
    Container(ContainerName),
}

enum Joint {
    And,
    Or,
}

/// The rest of an expression.
struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self, TagFilterError> {
        let reader = Self { whole: text, rest: text.trim() };
        if text.len() > BYTES_MAX { Err(reader.broken()) } else { Ok(reader) }
    }

    /// The number of the next character, from 1.
    fn at(&self) -> usize {
        let read = self.whole.trim_end().len() - self.rest.trim_end().len();
        self.whole.get(..read).unwrap_or_default().chars().count() + 1
    }

    fn broken(&self) -> TagFilterError {
        let next = self.rest.split_whitespace().next().unwrap_or_default();
        let text = next.chars().take(QUOTED_MAX).collect();
        TagFilterError::At { at: self.at(), fault: TagFault::Unexpected(text) }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default().trim_start();
    }

    /// Takes a text between `quote`s from the front.
    fn quoted(&mut self, quote: char) -> Option<&'a str> {
        let inside = self.rest.strip_prefix(quote)?;
        let end = inside.find(quote)?;
        let text = inside.get(..end)?;
        self.skip(end + 2 * quote.len_utf8());
        Some(text)
    }

    /// Takes letters, digits, `_` and a leading `@` from the front.
    fn word(&mut self) -> Option<&'a str> {
        let body = self.rest.strip_prefix('@').unwrap_or(self.rest);
        let marks = self.rest.len() - body.len();
        let end = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
        let word = self.rest.get(..marks + end).filter(|_| end > 0)?;
        self.skip(word.len());
        Some(word)
    }

    fn clause(&mut self) -> Result<Clause, TagFilterError> {
        let at = self.at();
        let refused = |fault| TagFilterError::At { at, fault };
        let quoted = self.rest.starts_with('"');
        let key = if quoted { self.quoted('"') } else { self.word() };
        let key = key.ok_or_else(|| self.broken())?;
        if key.is_empty() {
            return Err(refused(TagFault::KeyLength));
        }
        if !quoted && key.starts_with('@') && !key.eq_ignore_ascii_case("@container") {
            return Err(refused(TagFault::Parameter(key.chars().take(QUOTED_MAX).collect())));
        }
        let sign = self.at();
        let comparison = self.comparison().ok_or_else(|| self.broken())?;
        let value = self.quoted('\'').ok_or_else(|| self.broken())?;
        if quoted || !key.starts_with('@') {
            if let Some(foreign) = key.chars().chain(value.chars()).find(|&c| !is_allowed(c)) {
                return Err(refused(TagFault::Character(foreign)));
            }
            let (key, value) = (key.to_owned(), value.to_owned());
            return Ok(Clause::Tag(TagClause { key, comparison, value }));
        }
        let unexpected = |text: &str| TagFault::Unexpected(text.chars().take(QUOTED_MAX).collect());
        if comparison != Comparison::Equal {
            let fault = unexpected(comparison.as_str());
            return Err(TagFilterError::At { at: sign, fault });
        }
        ContainerName::new(value).map(Clause::Container).map_err(|_| refused(unexpected(value)))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        // Those of two characters first.
        const ALL: [Comparison; 6] = [
            Comparison::NotEqual,
            Comparison::GreaterOrEqual,
            Comparison::LessOrEqual,
            Comparison::Equal,
            Comparison::Greater,
            Comparison::Less,
        ];
        let found = ALL.into_iter().find(|sign| self.rest.starts_with(sign.as_str()))?;
        self.skip(found.as_str().len());
        Some(found)
    }

    fn joint(&mut self) -> Result<Option<Joint>, TagFilterError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let broken = self.broken();
        match self.word() {
            Some(word) if word.eq_ignore_ascii_case("and") => Ok(Some(Joint::And)),
            Some(word) if word.eq_ignore_ascii_case("or") => Ok(Some(Joint::Or)),
            _ => Err(broken),
        }
    }
}

#[cfg(test)]
mod tests;
