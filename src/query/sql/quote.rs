//! Quotes of statements in faults.

/// Characters of a name or a literal that a fault quotes.
const QUOTED_MAX: usize = 100;

/// Shortens a quote of a statement to a hundred characters.
pub(crate) fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(QUOTED_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}
