//! Conversion that the statement asks for.

use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::decimal::Decimal;
use crate::query::value::decimal::PRECISION_MAX;
use crate::query::value::number;

/// A type that `CAST` converts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Float,
    Text,
    Timestamp,
    Bool,
    Decimal { precision: u8, scale: u8 },
}

impl Type {
    /// The documented names, and those that other dialects of SQL have for the same types. A
    /// decimal without digits has 38 of them, none behind the point.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_uppercase();
        let (word, digits) = name.split_once('(').unwrap_or((&name, ""));
        let digits = digits.trim_end_matches(')');
        Some(match word.trim() {
            "INT" | "INTEGER" | "BIGINT" | "SMALLINT" | "TINYINT" | "INT64" => Self::Int,
            "FLOAT" | "DOUBLE" | "DOUBLE PRECISION" | "REAL" | "FLOAT64" => Self::Float,
            "STRING" | "VARCHAR" | "NVARCHAR" | "CHAR" | "TEXT" => Self::Text,
            "TIMESTAMP" | "DATETIME" | "DATE" => Self::Timestamp,
            "BOOL" | "BOOLEAN" | "BIT" => Self::Bool,
            "DECIMAL" | "NUMERIC" | "DEC" => {
                let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
                let precision = if precision.is_empty() { "38" } else { precision.trim() };
                let (precision, scale) = (precision.parse().ok()?, scale.trim().parse().ok()?);
                let is_right = (1..=PRECISION_MAX).contains(&precision) && scale <= precision;
                return is_right.then_some(Self::Decimal { precision, scale });
            }
            _ => return None,
        })
    }

    /// The value in this type. A null stays one. A fraction is cut off in a whole number, as in
    /// Transact-SQL, but text must have the form of a number.
    pub(crate) fn cast<'a>(self, value: Value<'a>) -> Result<Value<'a>, Trouble> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        match self {
            Self::Int => int(&value).map(Value::Int),
            Self::Float => value.number().map(|number| Value::Float(number.to_f64())),
            Self::Text if matches!(value, Value::Text(_)) => Ok(value),
            Self::Text => Ok(Value::Text(value.written().into_owned().into())),
            Self::Timestamp => value.time().map(Value::Time),
            Self::Bool => Ok(value.truth()?.map_or(Value::Null, Value::Bool)),
            Self::Decimal { precision, scale } => {
                let fitted = decimal(&value)?.fitted(precision, scale);
                fitted.map(Value::Decimal).ok_or_else(Trouble::conversion)
            }
        }
    }
}

/// The value as a whole number.
pub(crate) fn int(value: &Value<'_>) -> Result<i64, Trouble> {
    match value.number()? {
        Number::Int(number) => Ok(number),
        Number::Float(number) => number::whole(number.trunc()).ok_or_else(Trouble::conversion),
        Number::Decimal(number) => i64::try_from(number.whole()).map_err(|_| Trouble::conversion()),
    }
}

/// The value as a decimal.
pub(crate) fn decimal(value: &Value<'_>) -> Result<Decimal, Trouble> {
    if let Value::Text(text) = value
        && let Some(decimal) = Decimal::parse(text.trim())
    {
        return Ok(decimal);
    }
    let number = value.number()?;
    let written = |number: f64| Decimal::parse(&format!("{number}"));
    number.decimal().or_else(|| written(number.to_f64())).ok_or_else(Trouble::conversion)
}
