//! From the bytes of a blob to its records.

pub(crate) mod delimited;
pub(crate) mod json;
pub(crate) mod parquet;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::query::answer::Answer;
use crate::query::input::delimited::Dialect;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::sql::Statement;
use crate::query::trouble::RECORD_TOO_LARGE;

/// Bytes of a record. The service's documents name no limit of their own.
pub(crate) const RECORD_MAX: usize = 4 << 20;
/// Bytes of input or of output of one turn, about.
const WORK: u64 = 1 << 20;
/// Faults of one turn.
const FAULTS: usize = 1000;

/// What a reader needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    Bytes(Range<u64>),
    /// Another turn.
    Turn,
    /// The blob ends here.
    Nothing,
}

/// How much a turn has done.
#[derive(Debug)]
pub(crate) struct Turn {
    output: usize,
    input: u64,
}

impl Turn {
    pub(crate) fn new(sink: &Sink) -> Self {
        Self { output: sink.data.len(), input: 0 }
    }

    /// Counts work of so many bytes; whether the turn is over.
    pub(crate) fn is_over(&mut self, input: usize, sink: &Sink) -> bool {
        self.input += input as u64;
        let output = sink.data.len().saturating_sub(self.output) as u64;
        self.input >= WORK || output >= WORK || sink.faults.len() >= FAULTS
    }
}

/// The fault of a record that begins here.
pub(crate) fn too_large(position: u64) -> Fault {
    let text = format!("A record is larger than {RECORD_MAX} bytes.");
    Fault::fatal(RECORD_TOO_LARGE, text, position)
}

/// Reads a blob.
#[derive(Debug)]
pub(crate) enum Reader {
    Delimited(Box<delimited::Reader>),
    Json(Box<json::Reader>),
    Parquet(Box<parquet::Reader>),
}

impl Reader {
    pub(crate) fn delimited(
        statement: &Statement,
        dialect: Dialect,
        has_headers: bool,
        length: u64,
    ) -> Self {
        let reader = delimited::Reader::new(statement, dialect, has_headers, length);
        Self::Delimited(Box::new(reader))
    }

    pub(crate) fn json(statement: &Statement, separator: &str, length: u64) -> Self {
        Self::Json(Box::new(json::Reader::new(statement, separator, length)))
    }

    pub(crate) fn parquet(length: u64) -> Self {
        Self::Parquet(Box::new(parquet::Reader::new(length)))
    }

    /// Gives records to the answer until more bytes are needed or the turn is over.
    pub(crate) fn work(&mut self, answer: &mut Answer, sink: &mut Sink) -> Result<Want, Fault> {
        match self {
            Self::Delimited(reader) => reader.work(answer, sink),
            Self::Json(reader) => reader.work(answer, sink),
            Self::Parquet(reader) => reader.work(answer, sink),
        }
    }

    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        match self {
            Self::Delimited(reader) => reader.feed(bytes),
            Self::Json(reader) => reader.feed(bytes),
            Self::Parquet(reader) => reader.feed(bytes),
        }
    }

    /// Names of the columns, if the blob says them.
    pub(crate) fn names(&self) -> Vec<Cow<'_, str>> {
        match self {
            Self::Delimited(reader) => reader.names(),
            Self::Json(_) => Vec::new(),
            Self::Parquet(reader) => reader.names(),
        }
    }
}
