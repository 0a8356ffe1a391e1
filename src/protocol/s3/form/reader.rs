//! Reads the fields of a form up to the file, as they arrive.

use bytes::Bytes;
use memchr::memmem;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::form::boundary::Boundary;
use crate::protocol::s3::form::boundary::malformed;
use crate::protocol::s3::form::disposition::Disposition;
use crate::protocol::s3::form::fields::Field;
use crate::protocol::s3::form::fields::PostForm;

/// The longest fields before the file, with their heads and boundaries, bytes.
const FIELDS_BYTES_MAX: usize = 20 * 1024;
/// The name of the field with the file.
const FILE: &str = "file";
const LINE_END: &[u8] = b"\r\n";

/// Where the reader is.
#[derive(Debug)]
enum Stage {
    /// Before the first boundary, or in the value of the named field.
    Value(Option<String>),
    /// Right behind a boundary.
    Bounded,
    /// In the head of a part.
    Head,
}

/// Reads the fields of a form up to the file.
#[derive(Debug)]
pub struct FormReader {
    boundary: Boundary,
    /// The bytes of the body that arrived, behind an added CRLF: the first boundary may have none.
    read: Vec<u8>,
    /// Where the current part begins.
    from: usize,
    /// How far that part was searched for its end.
    searched: usize,
    stage: Stage,
    fields: Vec<Field>,
}

impl FormReader {
    /// A reader of a form with this boundary.
    #[must_use]
    pub fn new(boundary: Boundary) -> Self {
        let (from, searched) = (0, 0);
        let (stage, fields) = (Stage::Value(None), Vec::new());
        Self { boundary, read: LINE_END.to_vec(), from, searched, stage, fields }
    }

    /// Takes the next bytes of the body. Returns the form when its file begins; `bytes` then begins
    /// with the content of the file.
    ///
    /// # Errors
    /// `FormTooLong` when the fields are longer than 20 KB, `MalformedForm`, and
    /// `InvalidHeaderValue` (InvalidArgument) for fields that are missing or repeated.
    pub fn push(&mut self, bytes: &mut Bytes) -> Result<Option<PostForm>, Refusal> {
        let known = self.read.len();
        let room = FIELDS_BYTES_MAX.saturating_sub(known - LINE_END.len());
        let mut rest = bytes.clone();
        self.read.extend_from_slice(&rest.split_to(room.min(rest.len())));
        match self.advance()? {
            Some(filename) => {
                *bytes = bytes.split_off(self.from.saturating_sub(known).min(bytes.len()));
                let fields = std::mem::take(&mut self.fields);
                PostForm::new(fields, filename.as_deref(), self.boundary.clone()).map(Some)
            }
            None if rest.is_empty() => {
                bytes.clear();
                Ok(None)
            }
            None => Err(Reason::FormTooLong.into()),
        }
    }

    /// The refusal of a body that has ended already.
    #[must_use]
    pub fn ended(&self) -> Refusal {
        malformed()
    }

    /// Reads parts until more bytes are needed. Returns the name of the file when it begins.
    fn advance(&mut self) -> Result<Option<Option<String>>, Refusal> {
        loop {
            match &mut self.stage {
                Stage::Value(name) => {
                    let name = name.take();
                    let Some(end) = self.find(&self.boundary.delimiter().clone()) else {
                        self.stage = Stage::Value(name);
                        return Ok(None);
                    };
                    if let Some(name) = name {
                        let value = self.read.get(self.from..end).unwrap_or_default();
                        let value = std::str::from_utf8(value).map_err(|_| malformed())?;
                        self.fields.push(Field::new(name, value.to_owned()));
                    }
                    self.go(end + self.boundary.delimiter().len(), Stage::Bounded);
                }
                Stage::Bounded => match after_boundary(self.rest()) {
                    After::More => return Ok(None),
                    After::Part(skipped) => self.go(self.from + skipped, Stage::Head),
                    After::End => return Err(no_file()),
                    After::Other => return Err(malformed()),
                },
                Stage::Head => {
                    // The line end of the boundary is also the first half of the end of an empty
                    // head.
                    self.searched = self.searched.min(self.from - LINE_END.len());
                    let Some(end) = self.find(b"\r\n\r\n") else { return Ok(None) };
                    let head = self.read.get(self.from..end).unwrap_or_default();
                    let part = Disposition::read(head).ok_or_else(malformed)?;
                    self.go(end + 2 * LINE_END.len(), Stage::Value(None));
                    if part.name.eq_ignore_ascii_case(FILE) {
                        return Ok(Some(part.filename));
                    }
                    self.stage = Stage::Value(Some(part.name));
                }
            }
        }
    }

    /// Begins a stage at a place.
    fn go(&mut self, from: usize, stage: Stage) {
        (self.from, self.searched, self.stage) = (from, from, stage);
    }

    fn rest(&self) -> &[u8] {
        self.read.get(self.from..).unwrap_or_default()
    }

    /// Finds a text, at or behind the position where the last search ended.
    fn find(&mut self, wanted: &[u8]) -> Option<usize> {
        let found = memmem::find(self.read.get(self.searched..)?, wanted);
        let place = found.map(|at| self.searched + at);
        if place.is_none() {
            let kept = self.read.len().saturating_sub(wanted.len() - 1);
            self.searched = self.searched.max(kept);
        }
        place
    }
}

/// The meaning of the bytes behind a boundary.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// More bytes are needed.
    More,
    /// A part, behind this many bytes.
    Part(usize),
    /// The end of the form.
    End,
    /// Nothing that may follow.
    Other,
}

/// Reads the bytes behind a boundary: two hyphens at the end of the form, else a line end, perhaps
/// after white space (RFC 2046, 5.1.1).
pub(super) fn after_boundary(rest: &[u8]) -> After {
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match rest.get(blanks..).unwrap_or_default() {
        [] | [b'\r'] => After::More,
        [b'-'] if blanks == 0 => After::More,
        [b'-', b'-', ..] if blanks == 0 => After::End,
        [b'\r', b'\n', ..] => After::Part(blanks + LINE_END.len()),
        _ => After::Other,
    }
}

/// The refusal of a form that ends before its file.
fn no_file() -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .message("POST requires exactly one file upload per request.")
        .detail(Detail::HeaderName, FILE)
        .detail(Detail::HeaderValue, "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, value: &str) -> String {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    }

    fn reader() -> FormReader {
        FormReader::new(Boundary::new("B").unwrap())
    }

    /// Reads a body in pieces of that many bytes; the form, and what is left of the body.
    fn read(body: &str, size: usize) -> Result<Option<(PostForm, String)>, Reason> {
        let mut reader = reader();
        let mut body = Bytes::from(body.to_owned());
        while !body.is_empty() {
            let mut piece = body.split_to(size.min(body.len()));
            if let Some(form) = reader.push(&mut piece).map_err(|refusal| refusal.reason)? {
                let left = [&piece[..], &body[..]].concat();
                return Ok(Some((form, String::from_utf8(left).unwrap())));
            }
        }
        Ok(None)
    }

    #[test]
    fn fields_end_where_the_file_begins() {
        let body = [
            part("key", "a/${filename}"),
            part("Acl", ""),
            "--B \t\r\nContent-Disposition: form-data; name=\"FILE\"; filename=\"x\"\r\n\r\n"
                .into(),
            "content\r\n--B--".into(),
        ]
        .concat();
        for size in [1, 2, 3, 7, 1000] {
            for preamble in ["", "\r\n", "to be ignored\r\n"] {
                let (form, left) = read(&format!("{preamble}{body}"), size).unwrap().unwrap();
                assert_eq!((form.key(), form.get("acl")), ("a/x", Some("")));
                assert_eq!(left, "content\r\n--B--", "{size} {preamble}");
            }
        }
        assert_eq!(read(body.split("content").next().unwrap(), 9).unwrap().unwrap().1, "");
    }

    #[test]
    fn malformed_bodies_are_refused() {
        let head = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
        for (body, reason) in [
            (format!("--B--{}", part("key", "k")), Reason::InvalidHeaderValue),
            (format!("{}--B--", part("key", "k")), Reason::InvalidHeaderValue),
            (head.to_owned(), Reason::InvalidHeaderValue),
            (format!("{}--Bx\r\n", part("key", "k")), Reason::MalformedForm),
            ("--B\r\n\r\nx\r\n--B--".to_owned(), Reason::MalformedForm),
            ("--B\r\nContent-Type: a/b\r\n\r\nx".to_owned(), Reason::MalformedForm),
            (format!("{}{}{head}", part("key", "k"), part("KEY", "k")), Reason::InvalidHeaderValue),
        ] {
            for size in [1, 1000] {
                assert_eq!(read(&body, size).unwrap_err(), reason, "{body}");
            }
        }
        assert!(read("no form at all", 3).unwrap().is_none());
    }

    #[test]
    fn fields_have_a_limit() {
        let head = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
        let fixed = part("key", "k").len() + part("x-ignore-a", "").len() + head.len();
        for (more, fits) in [(0, true), (1, false)] {
            let value = "x".repeat(FIELDS_BYTES_MAX - fixed + more);
            let body = [&part("key", "k"), &part("x-ignore-a", &value), head, "file"].concat();
            for size in [1000, 1 << 20] {
                match read(&body, size) {
                    Ok(found) => assert!(fits && found.unwrap().1 == "file"),
                    Err(reason) => assert!(!fits && reason == Reason::FormTooLong),
                }
            }
        }
    }
}
