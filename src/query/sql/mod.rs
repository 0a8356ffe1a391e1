//! The statement: parsed by `sqlparser`, of which only the documented language is taken.

pub(crate) mod call;
pub(crate) mod column;
pub(crate) mod compile;
pub(crate) mod quote;
pub(crate) mod statement;

use crate::query::eval::Expression;
use crate::query::eval::aggregate::Aggregate;
use crate::query::request::Fault;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::trouble::PARSE_ERROR;

/// A statement that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) projection: Projection,
    /// The path behind `BlobStorage[*]` in `FROM`.
    pub(crate) from: Vec<Access>,
    pub(crate) filter: Option<Expression>,
    pub(crate) limit: Option<u64>,
    /// Columns to which expressions refer.
    pub(crate) columns: Vec<Column>,
    /// Aggregates to which expressions refer.
    pub(crate) aggregates: Vec<Aggregate>,
}

/// The selected values.
#[derive(Debug, Clone)]
pub(crate) enum Projection {
    /// `*`.
    All,
    Items(Vec<Item>),
    /// `sys.split(size)`: lengths of parts of the blob, each at least so long.
    Split(u64),
}

/// A column of the answer.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) expression: Expression,
    /// An alias, or the name of the column that it is.
    pub(crate) name: Option<String>,
}

/// The fault of a statement.
pub(crate) fn wrong(text: impl Into<String>) -> Fault {
    Fault::fatal(PARSE_ERROR, text, 0)
}
