//! Formats of the answer.

pub(crate) mod arrow;
pub(crate) mod bound;
pub(crate) mod cell;
pub(crate) mod delimited;
pub(crate) mod json;

use std::borrow::Cow;

use crate::query::output::arrow::Arrow;
use crate::query::output::cell::Cell;
use crate::query::output::delimited::Delimited;
use crate::query::output::json::Json;
use crate::query::request::Fault;
use crate::query::request::Output;
use crate::query::trouble::Trouble;

/// Writes records.
#[derive(Debug)]
pub(crate) enum Writer {
    Delimited(Delimited),
    Json(Json),
    Arrow(Box<Arrow>),
}

impl Writer {
    /// `count` is the number of columns if the statement says it.
    ///
    /// # Errors
    ///
    /// When the format is wrong, or has another number of columns than the statement.
    pub(crate) fn new(output: &Output, count: Option<usize>) -> Result<Self, Fault> {
        Ok(match output {
            Output::Csv(dialect) => Self::Delimited(Delimited::new(dialect)),
            Output::Json { record_separator } => Self::Json(Json::new(record_separator)),
            Output::Arrow(fields) => Self::Arrow(Box::new(Arrow::new(fields, count)?)),
        })
    }

    /// Before the first record, the names of the columns are written if the format has them.
    pub(crate) fn header(&mut self, out: &mut Vec<u8>, names: &[Cow<'_, str>]) {
        if let Self::Delimited(writer) = self {
            writer.header(out, names);
        }
    }

    /// Begins a record. If it is not ended, the caller cuts `out` back to where it was.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Delimited(writer) => writer.begin(),
            Self::Json(writer) => writer.begin(out),
            Self::Arrow(writer) => writer.begin(),
        }
    }

    /// Adds a value to the record.
    pub(crate) fn cell(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        cell: Cell<'_>,
    ) -> Result<(), Trouble> {
        match self {
            Self::Delimited(writer) => writer.cell(out, &cell),
            Self::Json(writer) => writer.cell(out, name, &cell.value()?),
            Self::Arrow(writer) => writer.cell(&cell.value()?),
        }
    }

    /// Ends a record.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Self::Delimited(writer) => writer.end(out),
            Self::Json(writer) => writer.end(out),
            Self::Arrow(writer) => return writer.end(out),
        }
        Ok(())
    }

    /// Writes a record that is written in the same format already; whether it could.
    pub(crate) fn whole(&mut self, out: &mut Vec<u8>, record: &[u8]) -> bool {
        match self {
            Self::Json(writer) => {
                writer.whole(out, record);
                true
            }
            Self::Delimited(_) | Self::Arrow(_) => false,
        }
    }

    /// Writes a record of delimited text that needs no quotes here either; whether it could.
    pub(crate) fn plain(&mut self, out: &mut Vec<u8>, record: &[u8], separator: u8) -> bool {
        match self {
            Self::Delimited(writer) => writer.plain(out, record, separator),
            Self::Json(_) | Self::Arrow(_) => false,
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Self::Arrow(writer) => writer.finish(out),
            Self::Delimited(_) | Self::Json(_) => Ok(()),
        }
    }
}
