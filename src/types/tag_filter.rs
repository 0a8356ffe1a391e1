//! Conditions on blob index tags: `x-ms-if-tags` and the `where` of Find Blobs by Tags.
//!
//! Source: "Specify conditional headers (tags)", "Find Blobs by Tags". AND binds more tightly than
//! OR. Tag values are compared as strings, byte by byte.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::types::ContainerName;
use crate::types::Tags;

/// The most characters of an expression. Ten conditions with the longest keys and values fit.
const CHARS_MAX: usize = 8 * 1024;

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TagFilterError {
    /// It does not follow the grammar, from this character on.
    #[error("the expression cannot be read at character {0}")]
    Syntax(usize),
    /// An operator, or `@container`, that is not supported in this place.
    #[error("`{0}` is not supported here")]
    Unsupported(&'static str),
    /// A search without a condition on a tag would be a scan.
    #[error("the expression names no tag")]
    NoTag,
}

/// How a tag's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`. A missing tag differs from every value.
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
            Comparison::NotEqual => found != Some(value),
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
    /// Parses an `x-ms-if-tags` expression.
    ///
    /// # Errors
    /// [`TagFilterError`].
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let mut groups = vec![Vec::new()];
        let mut reader = Reader::new(text)?;
        loop {
            match reader.clause()? {
                Clause::Tag(clause) => groups.last_mut().map(|group| group.push(clause)),
                Clause::Container(_) => return Err(TagFilterError::Unsupported("@container")),
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
    /// [`TagFilterError`].
    pub fn parse(text: &str) -> Result<Self, TagFilterError> {
        let mut query = Self { container: None, clauses: Vec::new() };
        let mut reader = Reader::new(text)?;
        loop {
            match reader.clause()? {
                Clause::Container(_) if query.container.is_some() => {
                    return Err(TagFilterError::Unsupported("@container"));
                }
                Clause::Container(name) => query.container = Some(name),
                Clause::Tag(TagClause { comparison: Comparison::NotEqual, .. }) => {
                    return Err(TagFilterError::Unsupported("<>"));
                }
                Clause::Tag(clause) => query.clauses.push(clause),
            }
            match reader.joint()? {
                None if query.clauses.is_empty() => return Err(TagFilterError::NoTag),
                None => return Ok(query),
                Some(Joint::And) => {}
                Some(Joint::Or) => return Err(TagFilterError::Unsupported("OR")),
            }
        }
    }

    /// Whether these tags satisfy all clauses.
    #[must_use]
    pub fn matches(&self, tags: &Tags) -> bool {
        self.clauses.iter().all(|clause| clause.matches(tags))
    }
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
        if text.len() > CHARS_MAX {
            return Err(TagFilterError::Syntax(CHARS_MAX));
        }
        Ok(Self { whole: text, rest: text.trim() })
    }

    fn broken(&self) -> TagFilterError {
        let at = self.whole.trim_end().len() - self.rest.trim_end().len();
        TagFilterError::Syntax(self.whole.get(..at).unwrap_or_default().chars().count())
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
        let quoted = self.rest.starts_with('"');
        let key = if quoted { self.quoted('"') } else { self.word() };
        let key = key.filter(|key| !key.is_empty()).ok_or_else(|| self.broken())?;
        let comparison = self.comparison().ok_or_else(|| self.broken())?;
        let value = self.quoted('\'').ok_or_else(|| self.broken())?;
        if quoted || !key.starts_with('@') {
            let (key, value) = (key.to_owned(), value.to_owned());
            return Ok(Clause::Tag(TagClause { key, comparison, value }));
        }
        if !key.eq_ignore_ascii_case("@container") || comparison != Comparison::Equal {
            return Err(TagFilterError::Unsupported("@"));
        }
        ContainerName::new(value).map(Clause::Container).map_err(|_| self.broken())
    }

    fn comparison(&mut self) -> Option<Comparison> {
        const SIGNS: [(&str, Comparison); 6] = [
            ("<>", Comparison::NotEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            ("=", Comparison::Equal),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ];
        let (sign, comparison) = SIGNS.into_iter().find(|(sign, _)| self.rest.starts_with(sign))?;
        self.skip(sign.len());
        Some(comparison)
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
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        Tags::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()).unwrap()
    }

    #[test]
    fn conditions_compare_texts_and_bind_and_before_or() {
        let tags = tags(&[("a", "1"), ("date", "2024-05-06"), ("white space", "x y")]);
        let holds = |text: &str| TagCondition::parse(text).unwrap().matches(&tags);
        for text in [
            "a = '1'",
            "\"a\"='1'",
            "a <> '2'",
            "missing <> '2'",
            "\"white space\" = 'x y'",
            "date >= '2024-05-06' AND date < '2024-06'",
            "a = '2' and a = '3' OR a = '1'",
            "a = '1' or a = '2' And a = '3'",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "a = '2'",
            "missing = ''",
            "missing >= ''",
            "missing < 'x'",
            "date > '2024-05-06'",
            "a = '1' AND a = '2' OR a = '3'",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn queries_know_the_container_and_no_alternatives() {
        let query = TagQuery::parse("@container = 'pics' AND \"k\" > 'a' AND k <= 'b'").unwrap();
        assert_eq!(query.container, Some(ContainerName::new("pics").unwrap()));
        assert_eq!(query.clauses.len(), 2);
        assert!(query.matches(&tags(&[("k", "b")])));
        assert!(!query.matches(&tags(&[("k", "a")])));
        let refused = |text: &str| TagQuery::parse(text).unwrap_err();
        assert_eq!(refused("a = '1' OR a = '2'"), TagFilterError::Unsupported("OR"));
        assert_eq!(refused("a <> '1'"), TagFilterError::Unsupported("<>"));
        assert_eq!(refused("@container = 'pics'"), TagFilterError::NoTag);
        assert_eq!(refused("@container > 'pics'"), TagFilterError::Unsupported("@"));
        assert_eq!(
            TagCondition::parse("@container = 'pics'").unwrap_err(),
            TagFilterError::Unsupported("@container")
        );
    }

    #[test]
    fn condition_without_a_tag_is_not_decoded() {
        let decode = |groups: &Vec<Vec<TagClause>>| {
            postcard::from_bytes::<TagCondition>(&postcard::to_stdvec(groups).unwrap())
        };
        let parsed = TagCondition::parse("a = '1' OR b > '2' AND c <> ''").unwrap();
        assert_eq!(decode(&parsed.0), Ok(parsed.clone()));
        let nameless = TagClause { key: String::new(), ..parsed.0[0][0].clone() };
        for groups in
            [vec![], vec![vec![]], vec![parsed.0[0].clone(), vec![]], vec![vec![nameless]]]
        {
            assert!(decode(&groups).is_err(), "{groups:?}");
        }
    }

    #[test]
    fn what_is_not_in_the_grammar_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("a", 1),
            ("a =", 3),
            ("a = 1", 4),
            ("a = '1", 4),
            ("a = '1' b = '2'", 8),
            ("a = '1' AND", 11),
            ("= '1'", 0),
            ("a == '1'", 3),
            ("'a' = '1'", 0),
            ("\"a = '1'", 0),
            ("\u{e4} = '1'", 0),
        ] {
            assert_eq!(TagCondition::parse(text), Err(TagFilterError::Syntax(at)), "{text}");
        }
        assert!(TagCondition::parse(&" ".repeat(8193)).is_err());
    }
}
