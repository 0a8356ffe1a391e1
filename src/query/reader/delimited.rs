//! Records of delimited text. Empty lines are not records.

use std::borrow::Cow;

use bytes::Bytes;

use crate::query::answer;
use crate::query::answer::Answer;
use crate::query::eval::Row;
use crate::query::input::delimited as input;
use crate::query::input::delimited::Dialect;
use crate::query::input::window::Window;
use crate::query::output::cell::Cell;
use crate::query::reader::turn::RECORD_MAX;
use crate::query::reader::turn::Turn;
use crate::query::reader::turn::Want;
use crate::query::reader::turn::too_large;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::sql::Projection;
use crate::query::sql::Statement;
use crate::query::sql::column::Column;
use crate::query::trouble::INVALID_COLUMN_NAME;
use crate::query::trouble::NOT_SUPPORTED;
use crate::query::trouble::RECORD_TOO_LARGE;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

/// Columns of a header.
const HEADER_MAX: usize = 16 * 1024;
/// The most fields of a record that are examined.
const FIELDS_MAX: usize = 64 * 1024;
/// Some programs write it before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads delimited text.
#[derive(Debug)]
pub(crate) struct Reader {
    window: Window,
    dialect: Dialect,
    /// The header is the next record.
    is_header_next: bool,
    named: Vec<Column>,
    /// The position in a record of each column of the statement.
    columns: Vec<usize>,
    is_all: bool,
    /// Fields at the front of a record that are examined.
    count: usize,
    names: Vec<String>,
    /// The size of parts if they are asked for, and where the current one begins.
    split: Option<(u64, u64)>,
    ends: Vec<usize>,
    is_begun: bool,
}

impl Reader {
    pub(crate) fn new(
        statement: &Statement,
        dialect: Dialect,
        has_headers: bool,
        length: u64,
    ) -> Self {
        let ordinal = |column: &Column| column.ordinal().map_or(0, |ordinal| ordinal - 1);
        let mut reader = Self {
            window: Window::new(length),
            dialect,
            is_header_next: has_headers,
            columns: statement.columns.iter().map(ordinal).collect(),
            named: statement.columns.clone(),
            is_all: matches!(statement.projection, Projection::All),
            count: 0,
            names: Vec::new(),
            split: match statement.projection {
                Projection::Split(size) => Some((size, 0)),
                Projection::All | Projection::Items(_) => None,
            },
            ends: Vec::new(),
            is_begun: false,
        };
        reader.count_fields();
        reader
    }

    fn count_fields(&mut self) {
        let last = self.columns.iter().map(|at| at.saturating_add(1)).max();
        self.count = if self.is_all { usize::MAX } else { last.unwrap_or(0) };
    }

    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        self.window.feed(bytes);
    }

    pub(crate) fn names(&self) -> Vec<Cow<'_, str>> {
        self.names.iter().map(|name| Cow::Borrowed(name.as_str())).collect()
    }

    pub(crate) fn work(&mut self, answer: &mut Answer, sink: &mut Sink) -> Result<Want, Fault> {
        if !self.is_begun {
            let bytes = self.window.bytes();
            if bytes.len() < BYTE_ORDER_MARK.len() && !self.window.is_end() {
                return Ok(Want::Bytes(self.window.wanted()));
            }
            self.is_begun = true;
            if bytes.starts_with(BYTE_ORDER_MARK) {
                self.window.advance(BYTE_ORDER_MARK.len());
            }
        }
        let mut turn = Turn::new(sink);
        loop {
            let (bytes, is_end) = (self.window.bytes(), self.window.is_end());
            let position = self.window.position();
            let Some(found) = self.dialect.find(bytes, is_end) else {
                if bytes.len() > RECORD_MAX {
                    return Err(too_large(position));
                }
                if !is_end {
                    return Ok(Want::Bytes(self.window.wanted()));
                }
                return self.last_part(answer, sink).map(|()| Want::Nothing);
            };
            if found.end > RECORD_MAX {
                return Err(too_large(position));
            }
            if let Some((size, start)) = &mut self.split {
                let length = position + found.next as u64 - *start;
                if length >= *size {
                    answer.number(length, sink)?;
                    *start += length;
                }
            } else if found.end > 0 {
                self.record(found, position, answer, sink)?;
            }
            self.window.advance(found.next);
            if answer.is_full() {
                return Ok(Want::Nothing);
            }
            if turn.is_over(found.next, answer, sink) {
                return Ok(Want::Turn);
            }
        }
    }

    /// At the end of the blob, the part that is smaller than requested.
    fn last_part(&self, answer: &mut Answer, sink: &mut Sink) -> Result<(), Fault> {
        match self.split {
            Some((_, start)) if self.window.position() > start => {
                answer.number(self.window.position() - start, sink)
            }
            _ => Ok(()),
        }
    }

    fn record(
        &mut self,
        found: input::Found,
        position: u64,
        answer: &mut Answer,
        sink: &mut Sink,
    ) -> Result<(), Fault> {
        let bytes = &self.window.bytes()[..found.end];
        let count = if self.is_header_next { usize::MAX } else { self.count };
        if count > 0 {
            self.dialect.split(bytes, found, count.min(FIELDS_MAX + 1), &mut self.ends);
        }
        if self.ends.len() > FIELDS_MAX && !self.is_header_next {
            let text = format!("A record has more than {FIELDS_MAX} fields.");
            sink.faults.push(Fault::of_record(RECORD_TOO_LARGE, text, position));
            return Ok(());
        }
        let fields = input::Record {
            dialect: &self.dialect,
            bytes,
            found,
            ends: &self.ends,
            columns: &self.columns,
        };
        if self.is_header_next {
            self.names = header(&fields, position)?;
            self.is_header_next = false;
            return self.find_columns();
        }
        answer.record(&Fields { fields, names: &self.names }, position, sink)
    }

    /// Finds the columns of the statement in the header.
    fn find_columns(&mut self) -> Result<(), Fault> {
        for (column, at) in self.named.iter().zip(&mut self.columns) {
            if column.ordinal().is_some() {
                continue;
            }
            let is_it = |name: &String| column.path.first().is_some_and(|p| p.is_named(name));
            let found = self.names.iter().position(is_it);
            let missing = || {
                let text = format!("The header has no column {}.", column.written());
                Fault::fatal(INVALID_COLUMN_NAME, text, 0)
            };
            *at = found.ok_or_else(missing)?;
        }
        self.count_fields();
        Ok(())
    }
}

/// The names in a header. Those that are not UTF-8 can only be referred to by number.
fn header(fields: &input::Record<'_>, position: u64) -> Result<Vec<String>, Fault> {
    if fields.ends.len() > HEADER_MAX {
        let text = format!("The header has more than {HEADER_MAX} columns.");
        return Err(Fault::fatal(NOT_SUPPORTED, text, position));
    }
    let field = |at| fields.field(at).map(|field| String::from_utf8_lossy(&field).into_owned());
    Ok((0..fields.ends.len()).filter_map(field).collect())
}

/// A record with the names of its fields.
#[derive(Debug)]
struct Fields<'a> {
    fields: input::Record<'a>,
    names: &'a [String],
}

impl Row for Fields<'_> {
    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        self.fields.column(column)
    }
}

impl Fields<'_> {
    fn name(&self, at: usize) -> Cow<'_, str> {
        match self.names.get(at) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(answer::numbered(at)),
        }
    }
}

impl answer::Record for Fields<'_> {
    fn all(
        &self,
        each: &mut dyn FnMut(&str, Cell<'_>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        for at in 0..self.fields.ends.len() {
            if let Some(field) = self.fields.field(at) {
                each(&self.name(at), Cell::Raw(field))?;
            }
        }
        Ok(())
    }

    fn text(&self) -> Option<(&[u8], u8)> {
        self.fields.plain()
    }

    fn names(&self) -> Vec<Cow<'_, str>> {
        let count = self.fields.ends.len().max(self.names.len());
        (0..count).map(|at| self.name(at)).collect()
    }
}
