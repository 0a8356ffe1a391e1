//! The body of Query Blob Contents.
//!
//! Source: "Query Blob Contents".

use http::HeaderMap;

use crate::protocol::azure::conditions;
use crate::protocol::azure::encryption;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::protocol::wire::xml::invalid_value;
use crate::query::ArrowField;
use crate::query::ArrowKind;
use crate::query::Delimited;
use crate::query::Input;
use crate::query::Output;
use crate::query::Request;

/// Bytes of the body: the longest expression, whose characters may be escaped, and the formats.
pub(super) const QUERY_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of an expression.
const EXPRESSION_BYTES_MAX: usize = 256 * 1024;
/// Columns of an Arrow schema.
const FIELDS_MAX: usize = 1024;

/// The head of a request. The query is read from its body.
pub(super) fn query(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = encryption::with(all, conditions::read(all)?)?;
    let query = Box::new(Request {
        expression: String::new(),
        input: Input::Csv(Delimited::default()),
        output: Output::Csv(Delimited::default()),
    });
    Ok(BlobOperation::QueryBlob { path, precondition, query }.into())
}

/// Reads the request's body. A blob without a format is delimited text. An answer without a format
/// has that of the blob; that of a Parquet blob is delimited text.
///
/// # Errors
/// `InvalidXmlDocument`, `UnsupportedXmlNode`, `MissingRequiredXmlNode`, `InvalidXmlNodeValue`.
pub(super) fn read_query(body: &[u8]) -> Result<Request, Refusal> {
    let root = xml::parse_long(body, "QueryRequest", 16 + 5 * FIELDS_MAX)?;
    root.only(&["QueryType", "Expression", "InputSerialization", "OutputSerialization"])?;
    match root.child_text("QueryType") {
        Some(kind) if kind.eq_ignore_ascii_case("sql") => {}
        Some(kind) => return Err(invalid_value("QueryType", kind)),
        None => return Err(xml::missing("QueryType")),
    }
    let expression = root.child_text("Expression").ok_or_else(|| xml::missing("Expression"))?;
    if expression.is_empty() || expression.len() > EXPRESSION_BYTES_MAX {
        let beginning: String = expression.chars().take(100).collect();
        return Err(invalid_value("Expression", &beginning));
    }
    let input = match format(&root, "InputSerialization")? {
        Some(format) => input(format)?,
        None => Input::Csv(Delimited::default()),
    };
    let output = match (format(&root, "OutputSerialization")?, &input) {
        (Some(format), _) => output(format)?,
        (None, Input::Csv(text)) => Output::Csv(text.clone()),
        (None, Input::Json { record_separator }) => {
            Output::Json { record_separator: record_separator.clone() }
        }
        (None, Input::Parquet) => Output::Csv(Delimited::default()),
    };
    Ok(Request { expression: expression.to_owned(), input, output })
}

/// The `Format` in a serialization; `None` without the serialization.
fn format<'a>(root: &'a Element, name: &str) -> Result<Option<&'a Element>, Refusal> {
    let Some(serialization) = root.child(name) else { return Ok(None) };
    serialization.only(&["Format"])?;
    let format = serialization.child("Format").ok_or_else(|| xml::missing("Format"))?;
    format.only(&[
        "Type",
        "DelimitedTextConfiguration",
        "JsonTextConfiguration",
        "ArrowConfiguration",
        "ParquetTextConfiguration",
    ])?;
    Ok(Some(format))
}

fn kind(format: &Element) -> Result<&str, Refusal> {
    format.child_text("Type").ok_or_else(|| xml::missing("Type"))
}

fn input(format: &Element) -> Result<Input, Refusal> {
    match kind(format)? {
        "delimited" => Ok(Input::Csv(delimited(format)?)),
        "json" => Ok(Input::Json { record_separator: json(format)? }),
        "parquet" => Ok(Input::Parquet),
        other => Err(invalid_value("Type", other)),
    }
}

fn output(format: &Element) -> Result<Output, Refusal> {
    match kind(format)? {
        "delimited" => Ok(Output::Csv(delimited(format)?)),
        "json" => Ok(Output::Json { record_separator: json(format)? }),
        "arrow" => Ok(Output::Arrow(arrow(format)?)),
        other => Err(invalid_value("Type", other)),
    }
}

fn delimited(format: &Element) -> Result<Delimited, Refusal> {
    let Some(text) = format.child("DelimitedTextConfiguration") else {
        return Ok(Delimited::default());
    };
    text.only(&["ColumnSeparator", "FieldQuote", "RecordSeparator", "EscapeChar", "HasHeaders"])?;
    let default = Delimited::default();
    // White space is a separator too.
    let or = |name: &str, default: String| match text.child(name) {
        Some(child) if !child.text.is_empty() => child.text.clone(),
        Some(_) | None => default,
    };
    Ok(Delimited {
        column_separator: or("ColumnSeparator", default.column_separator),
        record_separator: or("RecordSeparator", default.record_separator),
        // An empty one means that nothing is quoted: the Java client sends it so.
        field_quote: text.child("FieldQuote").map_or(default.field_quote, |it| it.text.clone()),
        escape_char: or("EscapeChar", default.escape_char),
        has_headers: match text.child_text("HasHeaders") {
            None | Some("") => false,
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            Some(text) => return Err(invalid_value("HasHeaders", text)),
        },
    })
}

fn json(format: &Element) -> Result<String, Refusal> {
    let Some(text) = format.child("JsonTextConfiguration") else { return Ok("\n".to_owned()) };
    text.only(&["RecordSeparator"])?;
    let separator = text.child("RecordSeparator").map(|child| child.text.as_str());
    Ok(separator.filter(|text| !text.is_empty()).unwrap_or("\n").to_owned())
}

fn arrow(format: &Element) -> Result<Vec<ArrowField>, Refusal> {
    let configuration =
        format.child("ArrowConfiguration").ok_or_else(|| xml::missing("ArrowConfiguration"))?;
    configuration.only(&["Schema"])?;
    let schema = configuration.child("Schema").ok_or_else(|| xml::missing("Schema"))?;
    if schema.children.is_empty() {
        return Err(xml::missing("Field"));
    }
    schema.children.iter().map(field).collect()
}

fn field(field: &Element) -> Result<ArrowField, Refusal> {
    if field.name != "Field" {
        return Err(xml::unsupported(&field.name));
    }
    field.only(&["Type", "Name", "Precision", "Scale"])?;
    let kind = match kind(field)? {
        "int64" => ArrowKind::Int64,
        "bool" => ArrowKind::Bool,
        "timestamp[ms]" => ArrowKind::TimestampMillis,
        "string" => ArrowKind::String,
        "double" => ArrowKind::Double,
        "decimal" => ArrowKind::Decimal,
        other => return Err(invalid_value("Type", other)),
    };
    let name = field.child("Name").map(|name| name.text.clone()).filter(|name| !name.is_empty());
    Ok(ArrowField {
        kind,
        name,
        precision: number(field, "Precision")?,
        scale: number(field, "Scale")?,
    })
}

fn number<T: std::str::FromStr>(field: &Element, name: &str) -> Result<Option<T>, Refusal> {
    match field.child_text(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| invalid_value(name, text)),
    }
}

#[cfg(test)]
mod tests;
