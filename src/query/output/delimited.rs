//! Delimited text.

use std::borrow::Cow;

use crate::query::output::bound::WRITTEN_MAX;
use crate::query::output::bound::bounded;
use crate::query::output::cell::Cell;
use crate::query::request;
use crate::query::trouble::Trouble;

/// Writes delimited text. A field is in quotes if it has a separator, a quote or an escape
/// character, the last two with another one before them. Without a quote in
/// the dialect, such bytes have the escape character before them, and without that too they stand
/// as they are.
#[derive(Debug)]
pub(crate) struct Delimited {
    column: Vec<u8>,
    record: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    has_headers: bool,
    /// Whether a byte makes quotes necessary.
    is_special: Box<[bool; 256]>,
    is_first: bool,
}

/// The separator, or the default one.
fn separator(text: &str, default: u8) -> Vec<u8> {
    if text.is_empty() { vec![default] } else { text.as_bytes().to_vec() }
}

/// The only byte of a sign, if it is one.
fn sign(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if *byte != 0 => Some(*byte),
        _ => None,
    }
}

impl Delimited {
    pub(crate) fn new(dialect: &request::Delimited) -> Self {
        let column = separator(&dialect.column_separator, b',');
        let record = separator(&dialect.record_separator, b'\n');
        let (quote, escape) = (sign(&dialect.field_quote), sign(&dialect.escape_char));
        let mut is_special = Box::new([false; 256]);
        for byte in column.iter().chain(&record).copied().chain(quote) {
            is_special[usize::from(byte)] = true;
        }
        // Readers of lines drop it before a line feed.
        is_special[usize::from(b'\r')] |= record.contains(&b'\n');
        // Readers drop it before any byte, in quotes or not.
        if let Some(escape) = escape {
            is_special[usize::from(escape)] = true;
        }
        let has_headers = dialect.has_headers;
        Self { column, record, quote, escape, has_headers, is_special, is_first: true }
    }

    pub(crate) fn header(&mut self, out: &mut Vec<u8>, names: &[Cow<'_, str>]) {
        if names.is_empty() || !std::mem::take(&mut self.has_headers) {
            return;
        }
        self.begin();
        for name in names {
            self.field(out, name.as_bytes());
        }
        self.end(out);
    }

    pub(crate) fn begin(&mut self) {
        self.is_first = true;
    }

    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.record);
    }

    /// Writes a field, unless the record gets too large with it: quoting may double it.
    pub(crate) fn cell(&mut self, out: &mut Vec<u8>, cell: &Cell<'_>) -> Result<(), Trouble> {
        match cell {
            Cell::Value(value) => {
                let text = value.written();
                bounded(text.len(), WRITTEN_MAX)?;
                self.field(out, text.as_bytes());
            }
            Cell::Raw(field) => self.field(out, field),
        }
        Ok(())
    }

    /// Writes a record as it is, if its columns are separated as ours and nothing in it needs
    /// quotes.
    pub(crate) fn plain(&self, out: &mut Vec<u8>, record: &[u8], separator: u8) -> bool {
        let [column] = self.column.as_slice() else { return false };
        let is_special = |byte: &u8| byte != column && self.is_special[usize::from(*byte)];
        // In most dialects these are the record separator, the quote and the carriage return.
        let is_plain = match (self.record.as_slice(), self.quote, self.escape) {
            ([end], Some(quote), escape) => {
                let has_escape = escape.is_some_and(|sign| memchr::memchr(sign, record).is_some());
                !has_escape && memchr::memchr3(*end, quote, b'\r', record).is_none()
            }
            _ => !record.iter().any(is_special),
        };
        if *column != separator || !is_plain {
            return false;
        }
        out.extend_from_slice(record);
        self.end(out);
        true
    }

    fn field(&mut self, out: &mut Vec<u8>, field: &[u8]) {
        if !std::mem::take(&mut self.is_first) {
            out.extend_from_slice(&self.column);
        }
        let is_special = |byte: &u8| self.is_special[usize::from(*byte)];
        if !field.iter().any(is_special) {
            out.extend_from_slice(field);
            return;
        }
        match (self.quote, self.escape) {
            (Some(quote), escape) => {
                out.push(quote);
                for byte in field {
                    if *byte == quote || Some(*byte) == escape {
                        out.push(escape.unwrap_or(quote));
                    }
                    out.push(*byte);
                }
                out.push(quote);
            }
            (None, Some(escape)) => {
                for byte in field {
                    if is_special(byte) {
                        out.push(escape);
                    }
                    out.push(*byte);
                }
            }
            (None, None) => out.extend_from_slice(field),
        }
    }
}
