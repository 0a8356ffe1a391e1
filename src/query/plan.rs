//! A request that was parsed and checked.

use crate::query::input::delimited::Dialect;
use crate::query::output::Writer;
use crate::query::request::Fault;
use crate::query::request::Input;
use crate::query::request::Output;
use crate::query::request::Request;
use crate::query::sql::Projection;
use crate::query::sql::Statement;
use crate::query::sql::compile;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::INVALID_COLUMN_NAME;

/// How the blob is read.
#[derive(Debug)]
pub(crate) enum Format {
    Delimited { dialect: Dialect, has_headers: bool },
    Json { separator: String },
    Parquet,
}

/// A request that was parsed and checked.
#[derive(Debug)]
pub struct Plan {
    pub(crate) statement: Statement,
    pub(crate) format: Format,
    pub(crate) output: Output,
}

impl Plan {
    /// Parses and checks a request.
    ///
    /// # Errors
    ///
    /// When the statement or a format of the request is wrong; nothing was read then.
    pub fn new(request: Request) -> Result<Self, Fault> {
        let statement = compile::statement(&request.expression)?;
        let format = match request.input {
            Input::Csv(delimited) => Format::Delimited {
                dialect: Dialect::new(&delimited)?,
                has_headers: delimited.has_headers,
            },
            Input::Json { record_separator } => Format::Json { separator: record_separator },
            Input::Parquet => Format::Parquet,
        };
        check(&statement, &format)?;
        if let Output::Csv(delimited) = &request.output {
            Dialect::new(delimited)?;
        }
        let plan = Self { statement, format, output: request.output };
        plan.writer()?;
        Ok(plan)
    }

    /// Writes the answer.
    pub(crate) fn writer(&self) -> Result<Writer, Fault> {
        let count = match &self.statement.projection {
            Projection::All => None,
            Projection::Items(items) => Some(items.len()),
            Projection::Split(_) => Some(1),
        };
        Writer::new(&self.output, count)
    }
}

/// Whether the statement fits the format of the blob.
fn check(statement: &Statement, format: &Format) -> Result<(), Fault> {
    let wrong = |text: &str| Err(Fault::fatal(INVALID_ARGUMENT, text, 0));
    let is_json = matches!(format, Format::Json { .. });
    let is_split = matches!(statement.projection, Projection::Split(_));
    if is_split && statement.filter.is_some() {
        return wrong("sys.split takes no WHERE.");
    }
    if !statement.from.is_empty() && !is_json {
        return wrong("A path behind BlobStorage is for JSON only.");
    }
    let Format::Delimited { has_headers, .. } = format else {
        return if is_split { wrong("sys.split is for delimited text only.") } else { Ok(()) };
    };
    for column in &statement.columns {
        let is_known = column.ordinal().is_some() || (*has_headers && column.path.len() == 1);
        if !is_known {
            let text = match has_headers {
                true => format!("Delimited text has no column {}.", column.written()),
                false => format!(
                    "There is no column {}: without a header a column is named by its number, as _1.",
                    column.written()
                ),
            };
            return Err(Fault::fatal(INVALID_COLUMN_NAME, text, 0));
        }
    }
    Ok(())
}
