//! `LIKE`.

use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::Trouble;

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Any text.
    Any,
    /// Any character.
    One,
    Exactly(char),
}

/// Takes a pattern apart.
pub(crate) fn parts(pattern: &str, escape: Option<char>) -> Result<Vec<Part>, Trouble> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        parts.push(match next {
            c if Some(c) == escape => {
                let text = "A LIKE pattern ends in its escape character.";
                let next = chars.next().ok_or_else(|| Trouble::new(INVALID_ARGUMENT, text))?;
                Part::Exactly(next)
            }
            '%' => Part::Any,
            '_' => Part::One,
            c => Part::Exactly(c),
        });
    }
    parts.dedup_by(|a, b| *a == Part::Any && *b == Part::Any);
    Ok(parts)
}

/// Whether a text fits. On a mismatch only the last `%` is made longer, so the time is at most the
/// product of the lengths.
pub(crate) fn fits(text: &str, parts: &[Part]) -> bool {
    let (mut rest, mut at) = (text.chars(), 0);
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let here = parts.get(at);
        if here == Some(&Part::Any) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let mut ahead = rest.clone();
        let next = ahead.next();
        let is_match = match (here, next) {
            (None, None) => return true,
            (Some(Part::One), Some(_)) => true,
            (Some(Part::Exactly(wanted)), Some(c)) => *wanted == c,
            _ => false,
        };
        if is_match {
            (rest, at) = (ahead, at + 1);
            continue;
        }
        let Some((after, from)) = &mut retry else { return false };
        if next.is_none() || from.next().is_none() {
            return false;
        }
        (rest, at) = (from.clone(), *after);
    }
}
