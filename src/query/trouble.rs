//! Why one record has no answer.

use std::borrow::Cow;

use crate::query::request::Fault;

/// A name that the service's clients know, from the tests of its SDKs: a value is not of the type
/// that is needed.
pub(crate) const INVALID_TYPE_CONVERSION: &str = "InvalidTypeConversion";
/// As above: the record has no column with this number, or no record can have one.
pub(crate) const INVALID_COLUMN_ORDINAL: &str = "InvalidColumnOrdinal";
/// As above: the blob or the statement cannot be read.
pub(crate) const PARSE_ERROR: &str = "ParseError";
/// Ours: no column has this name.
pub(crate) const INVALID_COLUMN_NAME: &str = "InvalidColumnName";
/// Ours: a value of a function is outside of what it takes.
pub(crate) const INVALID_ARGUMENT: &str = "InvalidArgument";
/// Ours: the result of a calculation does not fit.
pub(crate) const ARITHMETIC_OVERFLOW: &str = "ArithmeticOverflow";
/// Ours: a division by zero.
pub(crate) const DIVIDE_BY_ZERO: &str = "DivideByZero";
/// Ours: a record is larger than is allowed.
pub(crate) const RECORD_TOO_LARGE: &str = "RecordTooLarge";
/// Ours: a request or a blob needs a feature that this engine does not have.
pub(crate) const NOT_SUPPORTED: &str = "NotSupported";

/// Ours: a record needs more work or memory than a query may have.
pub(crate) const QUERY_TOO_EXPENSIVE: &str = "QueryTooExpensive";

/// Why one record has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    name: &'static str,
    text: Cow<'static, str>,
    /// It ends the query: later records would fail as well.
    is_fatal: bool,
}

impl Trouble {
    pub(crate) fn new(name: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { name, text: text.into(), is_fatal: false }
    }

    /// The expressions cost too much for a record.
    pub(crate) fn too_expensive() -> Self {
        let text = "The expressions of the statement take too much work for this record. Use \
            shorter lists, fewer LIKE and || over long text, or smaller records.";
        Self { is_fatal: true, ..Self::new(QUERY_TOO_EXPENSIVE, text) }
    }

    /// The aggregates hold too much.
    pub(crate) fn too_large_aggregates(max: usize) -> Self {
        let text = format!(
            "The values of all aggregates have more than {max} bytes. Use fewer MIN and MAX over \
             long text, or SUBSTRING in them."
        );
        Self { is_fatal: true, ..Self::new(QUERY_TOO_EXPENSIVE, text) }
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// A value is not of the type that is needed.
    pub(crate) fn conversion() -> Self {
        Self::new(INVALID_TYPE_CONVERSION, "Invalid type conversion.")
    }

    /// The result of a calculation does not fit.
    pub(crate) fn overflow() -> Self {
        Self::new(ARITHMETIC_OVERFLOW, "The result of a calculation is out of range.")
    }

    /// The record has fewer columns; `column` counts from zero.
    pub(crate) fn ordinal(column: usize) -> Self {
        let text = format!("The record has no column {}.", column.saturating_add(1));
        Self::new(INVALID_COLUMN_ORDINAL, text)
    }

    /// The fault of the record at this position.
    pub(crate) fn of_record(self, position: u64) -> Fault {
        Fault::of_record(self.name, self.text, position)
    }

    /// The same, but nothing follows it.
    pub(crate) fn fatal(self, position: u64) -> Fault {
        Fault::fatal(self.name, self.text, position)
    }
}
