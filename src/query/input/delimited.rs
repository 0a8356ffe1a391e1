//! Delimited text: where a record ends and where its fields are.
//!
//! A quote has its meaning at the beginning of a field only. Within quotes two quotes are one. Text
//! between the closing quote and the separator belongs to the field unchanged.

use std::borrow::Cow;

use memchr::memchr;
use memchr::memchr2;
use memchr::memchr3;

use crate::query::eval::Row;
use crate::query::request::Delimited;
use crate::query::request::Fault;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::PARSE_ERROR;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

/// How delimited text is read. All signs are single bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    column: u8,
    record: u8,
    /// The separator of records is a carriage return and a line feed; a line feed alone is text.
    is_crlf: bool,
    quote: Option<u8>,
    escape: Option<u8>,
}

/// The one byte that a sign is; `None` if it is empty.
fn sign(what: &str, text: &str) -> Result<Option<u8>, Fault> {
    match text.as_bytes() {
        [] | [0] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => {
            let text = format!("The {what} is one character of ASCII, not {text:?}.");
            Err(Fault::fatal(INVALID_ARGUMENT, text, 0))
        }
    }
}

impl Dialect {
    /// # Errors
    ///
    /// When a sign has several characters, or two signs are the same.
    pub(crate) fn new(of: &Delimited) -> Result<Self, Fault> {
        let is_crlf = of.record_separator == "\r\n";
        let record = if is_crlf { "\n" } else { &of.record_separator };
        let dialect = Self {
            column: sign("column separator", &of.column_separator)?.unwrap_or(b','),
            record: sign("record separator", record)?.unwrap_or(b'\n'),
            is_crlf,
            quote: sign("field quote", &of.field_quote)?,
            escape: sign("escape character", &of.escape_char)?,
        };
        // A quote may be its own escape character: then it is doubled, as always.
        let escape = dialect.escape.filter(|escape| Some(*escape) != dialect.quote);
        let signs = [Some(dialect.column), Some(dialect.record), dialect.quote, escape];
        let is_twice = |at: usize| signs[at].is_some() && signs[..at].contains(&signs[at]);
        if (1..signs.len()).any(is_twice) {
            let text = "Two of the separators, the quote and the escape character are the same.";
            return Err(Fault::fatal(INVALID_ARGUMENT, text, 0));
        }
        Ok(Self { escape, ..dialect })
    }
}

/// A record at the front of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where its text ends.
    pub(crate) end: usize,
    /// Where the next record begins.
    pub(crate) next: usize,
    /// It has quotes or escape characters with a meaning.
    is_coded: bool,
}

impl Dialect {
    /// The next byte that may have a meaning outside of quotes.
    fn special(&self, bytes: &[u8]) -> Option<usize> {
        match (self.quote, self.escape) {
            (None, None) => memchr(self.record, bytes),
            (Some(sign), None) | (None, Some(sign)) => memchr2(self.record, sign, bytes),
            (Some(quote), Some(escape)) => memchr3(self.record, quote, escape, bytes),
        }
    }

    /// Where the quotes end that were opened before `at`: behind the closing one.
    fn behind_quotes(&self, bytes: &[u8], mut at: usize, quote: u8) -> usize {
        while at < bytes.len() {
            let found = match self.escape {
                Some(escape) => memchr2(quote, escape, &bytes[at..]),
                None => memchr(quote, &bytes[at..]),
            };
            let Some(found) = found else { break };
            at += found;
            if bytes[at] == quote && bytes.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 2;
        }
        bytes.len()
    }

    /// The record at the front; `None` if more bytes are needed to know it.
    pub(crate) fn find(&self, bytes: &[u8], is_end: bool) -> Option<Found> {
        let (mut at, mut is_coded) = (0, false);
        // A field begins here, even if it looks as if it went on.
        let mut field = 0;
        while at < bytes.len() {
            let Some(found) = self.special(&bytes[at..]) else { break };
            let here = at + found;
            let byte = bytes[here];
            at = here + 1;
            if byte == self.record {
                let is_pair = here > 0 && bytes[here - 1] == b'\r';
                if self.is_crlf && !is_pair {
                    continue;
                }
                let end = if is_pair && self.record == b'\n' { here - 1 } else { here };
                return Some(Found { end, next: at, is_coded });
            }
            if Some(byte) == self.escape {
                (is_coded, at) = (true, here + 2);
                field = at;
            } else if let Some(quote) = self.quote
                && (here == 0 || (here > field && bytes[here - 1] == self.column))
            {
                (is_coded, at) = (true, self.behind_quotes(bytes, at, quote));
                field = at;
            }
        }
        let end = match bytes {
            [.., b'\r'] if self.record == b'\n' => bytes.len() - 1,
            _ => bytes.len(),
        };
        (is_end && !bytes.is_empty()).then_some(Found { end, next: bytes.len(), is_coded })
    }

    /// Puts the ends of the fields of a record into `ends`, of at most `count` of them.
    pub(crate) fn split(&self, record: &[u8], found: Found, count: usize, ends: &mut Vec<usize>) {
        ends.clear();
        if !found.is_coded {
            ends.extend(memchr::memchr_iter(self.column, record).take(count));
            if ends.len() < count {
                ends.push(record.len());
            }
            return;
        }
        let mut at = 0;
        while ends.len() < count {
            if let (Some(quote), Some(first)) = (self.quote, record.get(at))
                && *first == quote
            {
                at = self.behind_quotes(record, at + 1, quote);
            }
            at = self.field_end(record, at);
            ends.push(at);
            if at == record.len() {
                break;
            }
            at += 1;
        }
    }

    /// Where an unquoted rest of a field ends.
    fn field_end(&self, record: &[u8], mut at: usize) -> usize {
        while let Some(found) = match self.escape {
            Some(escape) => memchr2(self.column, escape, record.get(at..).unwrap_or_default()),
            None => memchr(self.column, record.get(at..).unwrap_or_default()),
        } {
            at += found;
            if record[at] == self.column {
                return at;
            }
            at += 2;
        }
        record.len()
    }

    /// A field without its quotes and escape characters.
    fn decoded<'a>(&self, field: &'a [u8]) -> Cow<'a, [u8]> {
        let quote = self.quote.filter(|quote| field.first() == Some(quote));
        if let (Some(quote), None) = (quote, self.escape)
            && let Some((last, inner)) = field[1..].split_last()
            && *last == quote
            && memchr(quote, inner).is_none()
        {
            return Cow::Borrowed(inner);
        }
        if quote.is_none() && self.escape.is_none_or(|escape| memchr(escape, field).is_none()) {
            return Cow::Borrowed(field);
        }
        let mut text = Vec::with_capacity(field.len());
        let mut is_quoted = quote.is_some();
        let mut bytes = field.iter().copied().skip(usize::from(is_quoted)).peekable();
        while let Some(byte) = bytes.next() {
            if Some(byte) == self.escape {
                text.extend(bytes.next());
            } else if is_quoted && Some(byte) == quote {
                match bytes.next_if_eq(&byte) {
                    Some(quote) => text.push(quote),
                    None => is_quoted = false,
                }
            } else {
                text.push(byte);
            }
        }
        Cow::Owned(text)
    }
}

/// A record of delimited text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) bytes: &'a [u8],
    pub(crate) found: Found,
    /// Where its fields end.
    pub(crate) ends: &'a [usize],
    /// The position in the record of each column of the plan.
    pub(crate) columns: &'a [usize],
}

impl<'a> Record<'a> {
    /// The record and its separator, if nothing in it is in quotes or escaped.
    pub(crate) fn plain(&self) -> Option<(&[u8], u8)> {
        (!self.found.is_coded).then_some((self.bytes, self.dialect.column))
    }

    /// A field; `None` if it does not exist.
    pub(crate) fn field(&self, at: usize) -> Option<Cow<'a, [u8]>> {
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] + 1 };
        let field = &self.bytes[start..end];
        Some(if self.found.is_coded { self.dialect.decoded(field) } else { Cow::Borrowed(field) })
    }
}

/// A field as text.
pub(crate) fn text(field: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Trouble> {
    let wrong = || Trouble::new(PARSE_ERROR, "A field is not UTF-8.");
    match field {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| wrong()),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| wrong()),
    }
}

impl Row for Record<'_> {
    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        let at = self.columns[column];
        let field = self.field(at).ok_or_else(|| Trouble::ordinal(at))?;
        text(field).map(Value::Text)
    }
}
