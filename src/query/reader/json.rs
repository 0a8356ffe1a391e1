//! Records of JSON.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::query::answer;
use crate::query::answer::Answer;
use crate::query::eval::Row;
use crate::query::input::json as input;
use crate::query::input::json::Found;
use crate::query::input::json::Scanner;
use crate::query::input::walk::Walk;
use crate::query::input::window::Window;
use crate::query::output::cell::Cell;
use crate::query::reader::ROW;
use crate::query::reader::turn::RECORD_MAX;
use crate::query::reader::turn::Turn;
use crate::query::reader::turn::Want;
use crate::query::reader::turn::too_large;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::sql::Projection;
use crate::query::sql::Statement;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::trouble::Trouble;
use crate::query::value::Json;
use crate::query::value::Value;

/// Reads JSON.
#[derive(Debug)]
pub(crate) struct Reader {
    window: Window,
    scanner: Scanner,
    from: Vec<Access>,
    columns: Vec<Column>,
    /// Where the record is whose values are being walked, as `FROM` has a path.
    open: Option<(Range<usize>, Walk)>,
    /// First names of what is used of a record; all are used if it is `None`.
    wanted: Option<Vec<Access>>,
}

impl Reader {
    pub(crate) fn new(statement: &Statement, separator: &str, length: u64) -> Self {
        let firsts = || statement.columns.iter().filter_map(|column| column.path.first().cloned());
        let wanted = match &statement.projection {
            Projection::All => None,
            Projection::Items(_) | Projection::Split(_) => Some(firsts().collect()),
        };
        Self {
            window: Window::new(length),
            scanner: Scanner::new(separator),
            from: statement.from.clone(),
            columns: statement.columns.clone(),
            wanted,
            open: None,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        self.window.feed(bytes);
    }

    pub(crate) fn work(&mut self, answer: &mut Answer, sink: &mut Sink) -> Result<Want, Fault> {
        let mut turn = Turn::new(sink);
        loop {
            if let Some((range, walk)) = self.open.take() {
                match self.values(range, walk, answer, sink, &mut turn)? {
                    Some(want) => return Ok(want),
                    None => continue,
                }
            }
            let (bytes, is_end) = (self.window.bytes(), self.window.is_end());
            let position = self.window.position();
            let found = self.scanner.find(bytes, is_end).map_err(|fault| {
                let position = position + fault.position;
                Fault { position, ..fault }
            })?;
            let worked = match found {
                Found::Record(range) => {
                    let at = position + range.start as u64;
                    if range.len() > RECORD_MAX {
                        return Err(too_large(at));
                    }
                    if !self.from.is_empty() {
                        input::check(&bytes[range.clone()], at)?;
                        self.open = Some((range, Walk::default()));
                        continue;
                    }
                    self.record(&bytes[range.clone()], at, answer, sink)?;
                    range.end
                }
                Found::Nothing(count) | Found::More(count) => {
                    self.window.advance(count);
                    if self.window.bytes().len() > RECORD_MAX {
                        return Err(too_large(self.window.position()));
                    }
                    if is_end {
                        return Ok(Want::Nothing);
                    }
                    return Ok(Want::Bytes(self.window.wanted()));
                }
            };
            self.window.advance(worked);
            if answer.is_full() {
                return Ok(Want::Nothing);
            }
            if turn.is_over(worked + ROW, answer, sink) {
                return Ok(Want::Turn);
            }
        }
    }

    /// Gives values of the record at the front to the answer. `None` if it has no more.
    fn values(
        &mut self,
        range: Range<usize>,
        mut walk: Walk,
        answer: &mut Answer,
        sink: &mut Sink,
        turn: &mut Turn,
    ) -> Result<Option<Want>, Fault> {
        let position = self.window.position() + range.start as u64;
        let record = &self.window.bytes()[range.clone()];
        while let Some(value) = walk.next(record, &self.from) {
            let worked = value.len() + ROW;
            self.record(&record[value], position, answer, sink)?;
            if answer.is_full() {
                return Ok(Some(Want::Nothing));
            }
            if turn.is_over(worked, answer, sink) {
                self.open = Some((range, walk));
                return Ok(Some(Want::Turn));
            }
        }
        self.window.advance(range.end);
        Ok(turn.is_over(range.end, answer, sink).then_some(Want::Turn))
    }

    fn record(
        &self,
        bytes: &[u8],
        position: u64,
        answer: &mut Answer,
        sink: &mut Sink,
    ) -> Result<(), Fault> {
        let is_wanted = |name: &str| match &self.wanted {
            None => true,
            Some(names) => names.iter().any(|access| access.is_named(name)),
        };
        let json = match input::parse(bytes, &is_wanted, position) {
            Ok(json) => json,
            Err(fault) if fault.fatal => return Err(fault),
            Err(fault) => {
                sink.faults.push(fault);
                return Ok(());
            }
        };
        let is_whole = self.from.is_empty() && matches!(json, Json::Object(_));
        let written = is_whole.then_some(bytes);
        let record = input::Record { json: &json, columns: &self.columns, written };
        answer.record(&Object { record }, position, sink)
    }
}

/// A record of JSON; one that is not an object has one column.
#[derive(Debug)]
struct Object<'a> {
    record: input::Record<'a>,
}

impl Row for Object<'_> {
    fn cost(&self, column: usize) -> u64 {
        self.record.cost(column)
    }

    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        self.record.column(column)
    }
}

impl answer::Record for Object<'_> {
    fn all(
        &self,
        each: &mut dyn FnMut(&str, Cell<'_>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let Json::Object(fields) = self.record.json else {
            return each(&answer::numbered(0), Cell::Value(self.record.json.value()));
        };
        for (name, json) in fields {
            each(name, Cell::Value(json.value()))?;
        }
        Ok(())
    }

    fn names(&self) -> Vec<Cow<'_, str>> {
        let Json::Object(fields) = self.record.json else {
            return vec![Cow::Owned(answer::numbered(0))];
        };
        fields.iter().map(|(name, _)| Cow::Borrowed(name.as_ref())).collect()
    }

    fn json(&self) -> Option<&[u8]> {
        self.record.written
    }
}
