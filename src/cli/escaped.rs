//! Texts from elsewhere without the characters that control a terminal.

/// A text from elsewhere, for people, on one line. A terminal must not get characters that control
/// it or change the order of others: servers choose names, codes and messages.
pub(super) fn shown(text: &str) -> String {
    escaped(text, controls)
}

/// The same for a text of several lines.
pub(super) fn lines(text: &str) -> String {
    escaped(text, |character| !matches!(character, '\n' | '\t') && controls(character))
}

fn escaped(text: &str, is_unwanted: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unwanted(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Whether a character controls a terminal (C0, DEL, C1), ends a line, or changes the direction of
/// text.
pub(super) const fn controls(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_escaped() {
        let hostile =
            "a\x1b]0;x\x07\u{9b}2J\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{7f}\r\n\tf\u{2028}";
        let plain = "a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}e\\u{7f}\\r";
        assert_eq!(shown(hostile), format!("{plain}\\n\\tf\\u{{2028}}"));
        assert_eq!(lines(hostile), format!("{plain}\n\tf\\u{{2028}}"), "lines stay");
        let kept = "Ümläut 日本 👨\u{200d}👩 שלום";
        assert_eq!((shown(kept).as_str(), lines(kept).as_str()), (kept, kept));
    }
}
