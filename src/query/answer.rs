//! The processing of the records of a blob: the filter, the projection, the aggregates.

use std::borrow::Cow;

use crate::query::eval::Row;
use crate::query::eval::Scope;
use crate::query::eval::aggregate::State;
use crate::query::eval::fuel::Fuel;
use crate::query::output::Writer;
use crate::query::output::bound::WRITTEN_MAX;
use crate::query::output::bound::bounded;
use crate::query::output::cell::Cell;
use crate::query::plan::Plan;
use crate::query::request::Fault;
use crate::query::request::Output;
use crate::query::request::Sink;
use crate::query::sql::Item;
use crate::query::sql::Projection;
use crate::query::sql::Statement;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

/// Bytes of the values of all aggregates, those that a record is about to make counted.
const AGGREGATES_MAX: usize = 16 << 20;

/// A record, which can also show all of its columns.
pub(crate) trait Record: Row {
    /// Calls `each` with all columns and their names in order.
    fn all(
        &self,
        each: &mut dyn FnMut(&str, Cell<'_>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble>;

    /// Names of all columns.
    fn names(&self) -> Vec<Cow<'_, str>>;

    /// The record as delimited text without quotes, if it is written so, and its separator.
    fn text(&self) -> Option<(&[u8], u8)> {
        None
    }

    /// The record as JSON, if it is written so.
    fn json(&self) -> Option<&[u8]> {
        None
    }
}

/// A record without columns, for results at the end.
#[derive(Debug)]
struct Nothing;

impl Row for Nothing {
    fn column(&self, _column: usize) -> Result<Value<'_>, Trouble> {
        Ok(Value::Null)
    }
}

/// Makes the answer of records.
#[derive(Debug)]
pub(crate) struct Answer {
    statement: Statement,
    writer: Writer,
    states: Vec<State>,
    now_unix_millis: i64,
    /// Records that may still be written.
    left: u64,
    /// Names of the columns of the answer if the statement selects them one by one.
    names: Vec<String>,
    is_begun: bool,
    /// Whether the answer begins with the names.
    has_header: bool,
    /// The cost since a turn last asked for it.
    work: u64,
}

/// The name of a column that has no other, by its position from zero.
pub(crate) fn numbered(at: usize) -> String {
    format!("_{}", at + 1)
}

impl Answer {
    pub(crate) fn new(plan: &Plan, now_unix_millis: i64) -> Result<Self, Fault> {
        let writer = plan.writer()?;
        let statement = plan.statement.clone();
        let names = match &statement.projection {
            Projection::All => Vec::new(),
            Projection::Split(_) => vec![numbered(0)],
            Projection::Items(items) => {
                let name =
                    |(at, item): (usize, &Item)| item.name.clone().unwrap_or_else(|| numbered(at));
                items.iter().enumerate().map(name).collect()
            }
        };
        let states = statement.aggregates.iter().map(State::new).collect();
        let left = statement.limit.unwrap_or(u64::MAX);
        let has_header = matches!(&plan.output, Output::Csv(dialect) if dialect.has_headers);
        Ok(Self {
            statement,
            writer,
            states,
            now_unix_millis,
            left,
            names,
            is_begun: false,
            has_header,
            work: 0,
        })
    }

    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Whether the limit was reached, so that no record changes the answer.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// The cost of evaluation since the last call, in units of about a byte.
    pub(crate) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    /// Writes the names of the columns once, before anything else.
    fn begin(&mut self, out: &mut Vec<u8>, record: Option<&dyn Record>) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        // A record may have millions of names.
        if !self.has_header {
            return;
        }
        match (record, self.names.as_slice()) {
            (Some(record), []) => self.writer.header(out, &record.names()),
            (_, names) => {
                let names: Vec<Cow<'_, str>> =
                    names.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
                self.writer.header(out, &names);
            }
        }
    }

    /// Takes in a record that begins at this position of the blob.
    pub(crate) fn record(
        &mut self,
        record: &dyn Record,
        position: u64,
        sink: &mut Sink,
    ) -> Result<(), Fault> {
        let fuel = Fuel::default();
        let mut mark = sink.data.len();
        let result = self.attempt(record, &fuel, &mut sink.data, &mut mark);
        self.work = self.work.saturating_add(fuel.spent());
        match result {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.left -= 1;
                Ok(())
            }
            Err(Failure::OfRecord(trouble)) => {
                sink.data.truncate(mark);
                if trouble.is_fatal() {
                    return Err(trouble.fatal(position));
                }
                sink.faults.push(trouble.of_record(position));
                Ok(())
            }
            Err(Failure::Fatal(fault)) => Err(fault),
        }
    }

    /// Whether a record was written. It begins at the mark, which a header moves.
    fn attempt(
        &mut self,
        record: &dyn Record,
        fuel: &Fuel,
        out: &mut Vec<u8>,
        mark: &mut usize,
    ) -> Result<bool, Failure> {
        let (now_unix_millis, row) = (self.now_unix_millis, record as &dyn Row);
        let scope = Scope { row, aggregates: &[], now_unix_millis, fuel };
        if let Some(filter) = &self.statement.filter
            && filter.truth(scope)? != Some(true)
        {
            return Ok(false);
        }
        if !self.states.is_empty() {
            self.aggregate(scope)?;
            return Ok(false);
        }
        if !self.is_begun {
            self.begin(out, Some(record));
            *mark = out.len();
        }
        if matches!(self.statement.projection, Projection::All)
            && let Some(json) = record.json()
            && self.writer.whole(out, json)
        {
            return Ok(true);
        }
        if matches!(self.statement.projection, Projection::All)
            && let Some((text, separator)) = record.text()
            && self.writer.plain(out, text, separator)
        {
            return Ok(true);
        }
        self.writer.begin(out);
        let end = out.len().saturating_add(WRITTEN_MAX);
        match &self.statement.projection {
            Projection::All => record.all(&mut |name, cell| {
                self.writer.cell(out, name, cell)?;
                bounded(out.len(), end)
            })?,
            Projection::Items(items) => {
                for (item, name) in items.iter().zip(&self.names) {
                    let value = item.expression.value(scope)?;
                    self.writer.cell(out, name, Cell::Value(value))?;
                    bounded(out.len(), end)?;
                }
            }
            Projection::Split(_) => return Ok(false),
        }
        self.writer.end(out)?;
        Ok(true)
    }

    /// The changes of all aggregates are computed before the first one is applied: a record counts
    /// in all or in none.
    fn aggregate(&mut self, scope: Scope<'_>) -> Result<(), Failure> {
        let mut changes = Vec::with_capacity(self.states.len());
        let mut bytes = 0;
        for (aggregate, state) in self.statement.aggregates.iter().zip(&self.states) {
            let change = state.change(State::operand(aggregate, scope)?, scope)?;
            bytes += state.weight(&change);
            if bytes > AGGREGATES_MAX as u64 {
                return Err(Trouble::too_large_aggregates(AGGREGATES_MAX).into());
            }
            changes.push(change);
        }
        for (state, change) in self.states.iter_mut().zip(changes) {
            state.commit(change);
        }
        Ok(())
    }

    /// Writes a record of one number.
    pub(crate) fn number(&mut self, number: u64, sink: &mut Sink) -> Result<(), Fault> {
        let number = Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        self.row(vec![number], sink)
    }

    fn row(&mut self, values: Vec<Value<'static>>, sink: &mut Sink) -> Result<(), Fault> {
        let out = &mut sink.data;
        self.begin(out, None);
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.writer.begin(out);
        for (value, name) in values.into_iter().zip(&self.names) {
            let written = self.writer.cell(out, name, Cell::Value(value));
            written.map_err(|trouble| trouble.fatal(0))?;
        }
        self.writer.end(out)
    }

    /// Writes the results that are known only at the end of the blob.
    pub(crate) fn finish(&mut self, names: &[Cow<'_, str>], sink: &mut Sink) -> Result<(), Fault> {
        if !self.is_begun && self.names.is_empty() {
            self.is_begun = true;
            self.writer.header(&mut sink.data, names);
        }
        if !self.states.is_empty() {
            let values = self.results().map_err(|trouble| trouble.fatal(0))?;
            self.row(values, sink)?;
        }
        self.begin(&mut sink.data, None);
        self.writer.finish(&mut sink.data)
    }

    /// After a fatal fault: writes the records that are waiting to be written together.
    pub(crate) fn end_early(&mut self, sink: &mut Sink) {
        if let Err(fault) = self.writer.finish(&mut sink.data) {
            sink.faults.push(fault);
        }
    }

    fn results(&mut self) -> Result<Vec<Value<'static>>, Trouble> {
        let states = std::mem::take(&mut self.states);
        let results: Result<Vec<Value<'static>>, Trouble> =
            states.into_iter().map(State::result).collect();
        let results = results?;
        let (now_unix_millis, fuel) = (self.now_unix_millis, Fuel::default());
        let scope = Scope { row: &Nothing, aggregates: &results, now_unix_millis, fuel: &fuel };
        let Projection::Items(items) = &self.statement.projection else { return Ok(Vec::new()) };
        items.iter().map(|item| Ok(item.expression.value(scope)?.into_owned())).collect()
    }
}

/// Why a record was not written.
enum Failure {
    OfRecord(Trouble),
    Fatal(Fault),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::OfRecord(trouble)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fatal(fault)
    }
}
