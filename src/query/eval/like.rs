//! `LIKE`.

use crate::query::eval::fuel::Fuel;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::Trouble;

/// Bytes of a pattern that a record has; a statement is not longer either.
const PATTERN_MAX: usize = 256 * 1024;

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Any character.
    One,
    Exactly(char),
}

/// The part of a pattern between two `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Box<str>),
    /// With `_` in it.
    Parts(Box<[Part]>),
}

/// A pattern. Between its segments there is any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Segment>);

fn segment(parts: &[Part]) -> Segment {
    let text = |part: &Part| match part {
        Part::Exactly(c) => Some(*c),
        Part::One => None,
    };
    let text: Option<String> = parts.iter().map(text).collect();
    text.map_or_else(|| Segment::Parts(parts.into()), |text| Segment::Text(text.into()))
}

impl Segment {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// The rest of the text behind the segment, if the text begins with it.
    fn at_start<'t>(&self, text: &'t str, fuel: &Fuel) -> Result<Option<&'t str>, Trouble> {
        match self {
            Self::Text(start) => {
                fuel.spend(start.len() as u64)?;
                Ok(text.strip_prefix(start.as_ref()))
            }
            Self::Parts(parts) => {
                let mut chars = text.chars();
                for part in parts {
                    fuel.spend(1)?;
                    if !part.is(chars.next()) {
                        return Ok(None);
                    }
                }
                Ok(Some(chars.as_str()))
            }
        }
    }

    fn is_at_end(&self, text: &str, fuel: &Fuel) -> Result<bool, Trouble> {
        match self {
            Self::Text(end) => {
                fuel.spend(end.len() as u64)?;
                Ok(text.ends_with(end.as_ref()))
            }
            Self::Parts(parts) => {
                fuel.spend(parts.len() as u64)?;
                let mut chars = text.chars();
                Ok(parts.iter().rev().all(|part| part.is(chars.next_back())))
            }
        }
    }

    /// The rest of the text behind the first occurrence of the segment.
    fn anywhere<'t>(&self, text: &'t str, fuel: &Fuel) -> Result<Option<&'t str>, Trouble> {
        match self {
            Self::Text(wanted) => {
                // To begin a search costs some, too.
                fuel.spend(64 + wanted.len() as u64)?;
                let found = memchr::memmem::find(text.as_bytes(), wanted.as_bytes());
                let end = found.map(|at| at + wanted.len());
                fuel.spend(end.unwrap_or(text.len()) as u64)?;
                Ok(end.and_then(|end| text.get(end..)))
            }
            Self::Parts(_) => {
                let mut rest = text.chars();
                loop {
                    if let Some(behind) = self.at_start(rest.as_str(), fuel)? {
                        return Ok(Some(behind));
                    }
                    if rest.next().is_none() {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl Part {
    fn is(self, c: Option<char>) -> bool {
        match (self, c) {
            (_, None) => false,
            (Self::One, Some(_)) => true,
            (Self::Exactly(wanted), Some(c)) => wanted == c,
        }
    }
}

impl Pattern {
    /// Takes a pattern apart.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Result<Self, Trouble> {
        if pattern.len() > PATTERN_MAX {
            let text = format!("A LIKE pattern has more than {PATTERN_MAX} bytes.");
            return Err(Trouble::new(INVALID_ARGUMENT, text));
        }
        let (mut segments, mut parts) = (Vec::new(), Vec::new());
        let mut chars = pattern.chars();
        while let Some(next) = chars.next() {
            match next {
                c if Some(c) == escape => {
                    let text = "A LIKE pattern ends in its escape character.";
                    let next = chars.next().ok_or_else(|| Trouble::new(INVALID_ARGUMENT, text))?;
                    parts.push(Part::Exactly(next));
                }
                // The first and the last segment may be empty; they are the ends.
                '%' => {
                    if segments.is_empty() || !parts.is_empty() {
                        segments.push(segment(&parts));
                        parts.clear();
                    }
                }
                '_' => parts.push(Part::One),
                c => parts.push(Part::Exactly(c)),
            }
        }
        segments.push(segment(&parts));
        Ok(Self(segments))
    }

    /// Whether a text fits. Each segment is taken at its first place; if the last one does not fit
    /// then, it does not fit with later places either.
    pub(crate) fn fits(&self, text: &str, fuel: &Fuel) -> Result<bool, Trouble> {
        let [first, others @ ..] = self.0.as_slice() else { return Ok(text.is_empty()) };
        let Some(mut rest) = first.at_start(text, fuel)? else { return Ok(false) };
        let [middle @ .., last] = others else { return Ok(rest.is_empty()) };
        for segment in middle.iter().filter(|segment| !segment.is_empty()) {
            match segment.anywhere(rest, fuel)? {
                Some(behind) => rest = behind,
                None => return Ok(false),
            }
        }
        last.is_at_end(rest, fuel)
    }
}
