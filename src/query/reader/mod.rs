//! From the bytes of a blob to its records.

pub(crate) mod delimited;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod turn;

use std::borrow::Cow;

use bytes::Bytes;

use crate::query::answer::Answer;
use crate::query::input::delimited::Dialect;
use crate::query::reader::turn::Want;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::sql::Statement;

/// The cost of a record beside its bytes, in bytes.
pub(crate) const ROW: usize = 64;

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

    /// Bytes of the blob that it holds beside the record at hand.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Delimited(_) | Self::Json(_) => 0,
            Self::Parquet(reader) => reader.memory(),
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
