//! The head of a part: the name of the field, and the name of its file.

use std::borrow::Cow;

/// The parsed head of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disposition {
    /// The name of the field.
    pub(super) name: String,
    /// The name of the file, if the part has that parameter.
    pub(super) filename: Option<String>,
}

impl Disposition {
    /// Reads the lines of a head; `None` if they do not name the field. A head that is not UTF-8 is
    /// Latin-1: browsers send names of files in the encoding of the page.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let utf8 = std::str::from_utf8(head).map(Cow::Borrowed);
        let text = utf8.unwrap_or_else(|_| head.iter().copied().map(char::from).collect());
        let value = text.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-disposition").then_some(value.trim())
        })?;
        let (kind, rest) = value.split_once(';')?;
        if !kind.trim().eq_ignore_ascii_case("form-data") {
            return None;
        }
        let mut found = Self { name: String::new(), filename: None };
        let (mut rest, mut is_named) = (rest, false);
        while let Some((name, value, after)) = parameter(rest) {
            if name.eq_ignore_ascii_case("name") {
                (found.name, is_named) = (value, true);
            } else if name.eq_ignore_ascii_case("filename") {
                found.filename = Some(value);
            }
            rest = after;
        }
        is_named.then_some(found)
    }
}

/// The first parameter, its value, and what follows. In quotes a backslash escapes a quote, and is
/// an ordinary character elsewhere: browsers do not escape the backslashes of a path.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.trim_start_matches([';', ' ', '\t']).split_once('=')?;
    let Some(quoted) = rest.trim_start().strip_prefix('"') else {
        let (value, after) = rest.split_once(';').unwrap_or((rest, ""));
        return Some((name.trim(), value.trim().to_owned(), after));
    };
    let (mut value, mut from) = (String::new(), quoted);
    loop {
        let (before, after) = from.split_once('"')?;
        match before.strip_suffix('\\') {
            Some(escaped) => {
                value.push_str(escaped);
                value.push('"');
                from = after;
            }
            None => {
                value.push_str(before);
                return Some((name.trim(), value, after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (head, name, filename) in [
            ("Content-Disposition: form-data; name=\"key\"", "key", None),
            ("content-disposition:form-data;name=key", "key", None),
            ("Content-Disposition: form-data; name=\"\"", "", None),
            (
                "Content-Type: a/b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a;b\"",
                "file",
                Some("a;b"),
            ),
            ("Content-Disposition: form-data; filename=\"\"; name=\"file\"", "file", Some("")),
            (
                "Content-Disposition: form-data; name=\"f\"; filename=\"C:\\d\\a\\\"b\"",
                "f",
                Some("C:\\d\\a\"b"),
            ),
            (
                "Content-Disposition: form-data; name=\"f\"; filename=\"\u{e4}\"; x=y",
                "f",
                Some("\u{e4}"),
            ),
        ] {
            let read = Disposition::read(head.as_bytes()).unwrap();
            assert_eq!((read.name.as_str(), read.filename.as_deref()), (name, filename), "{head}");
        }
        for head in [
            "",
            "Content-Type: text/plain",
            "Content-Disposition: form-data",
            "Content-Disposition: file; name=\"file\"",
            "Content-Disposition: form-data; filename=\"a\"",
            "Content-Disposition: form-data; name=\"a",
        ] {
            assert_eq!(Disposition::read(head.as_bytes()), None, "{head}");
        }
        let latin = b"Content-Disposition: form-data; name=\"file\"; filename=\"\xe4.txt\"";
        let read = Disposition::read(latin).unwrap();
        assert_eq!(read.filename.as_deref(), Some("\u{e4}.txt"));
    }
}
