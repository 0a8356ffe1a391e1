//! The statement: parsed by `sqlparser`, of which only the documented language is taken.

pub(crate) mod call;
pub(crate) mod column;
pub(crate) mod compile;
pub(crate) mod statement;

use crate::query::eval::Expression;
use crate::query::eval::aggregate::Aggregate;
use crate::query::request::Fault;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::trouble::PARSE_ERROR;

/// Characters of a name or a literal that a fault quotes.
const QUOTED_MAX: usize = 100;

/// A statement that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) projection: Projection,
    /// What follows `BlobStorage[*]` in `FROM`.
    pub(crate) from: Vec<Access>,
    pub(crate) filter: Option<Expression>,
    pub(crate) limit: Option<u64>,
    /// Columns to which expressions refer.
    pub(crate) columns: Vec<Column>,
    /// Aggregates to which expressions refer.
    pub(crate) aggregates: Vec<Aggregate>,
}

/// What is selected.
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

/// What a fault quotes from a statement: a hundred characters of it.
pub(crate) fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(QUOTED_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}
