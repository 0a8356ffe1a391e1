//! XML text: written by hand because a page of a list has 5,000 entries and each costs an
//! allocation elsewhere.

use std::fmt::Write;

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

/// The complement of the characters that stay readable in a percent-encoded name.
const NAME: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Appends `text` as character data or an attribute's value.
pub(in crate::protocol) fn text(out: &mut String, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            // Parsers turn these into spaces or drop them unless they are spelled out.
            b'\t' => "&#x9;",
            b'\n' => "&#xA;",
            b'\r' => "&#xD;",
            _ => continue,
        };
        out.push_str(text.get(plain..at).unwrap_or_default());
        out.push_str(escape);
        plain = at + 1;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
}

/// Appends `<tag>text</tag>`.
pub(in crate::protocol) fn element(out: &mut String, tag: &str, value: &str) {
    open(out, tag);
    text(out, value);
    close(out, tag);
}

/// Appends `<tag>value</tag>` for values that need no escaping: numbers, dates, base64.
pub(in crate::protocol) fn plain(out: &mut String, tag: &str, value: impl std::fmt::Display) {
    open(out, tag);
    write!(out, "{value}").expect("writing to a string does not fail");
    close(out, tag);
}

/// Appends an element for a name of a blob; one that XML 1.0 cannot hold goes percent-encoded and
/// says so.
pub(in crate::protocol) fn name(out: &mut String, tag: &str, value: &str) {
    if value.chars().all(fits_xml) {
        element(out, tag, value);
        return;
    }
    out.push('<');
    out.push_str(tag);
    out.push_str(" Encoded=\"true\">");
    out.extend(utf8_percent_encode(value, &NAME));
    close(out, tag);
}

/// Appends an element; what XML 1.0 cannot hold is a character reference, as XML 1.1 has it and S3
/// writes it.
pub(in crate::protocol) fn referenced(out: &mut String, tag: &str, value: &str) {
    if value.chars().all(fits_xml) {
        element(out, tag, value);
        return;
    }
    open(out, tag);
    let mut buffer = [0; 4];
    for c in value.chars() {
        match fits_xml(c) {
            true => text(out, c.encode_utf8(&mut buffer)),
            false => write!(out, "&#x{:X};", u32::from(c)).expect("writing to a string succeeds"),
        }
    }
    close(out, tag);
}

/// Characters of XML 1.0.
pub(in crate::protocol) const fn fits_xml(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn open(out: &mut String, tag: &str) {
    out.push('<');
    out.push_str(tag);
    out.push('>');
}

fn close(out: &mut String, tag: &str) {
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}
