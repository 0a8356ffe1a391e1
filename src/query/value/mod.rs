//! Values of columns and expressions.

pub(crate) mod cast;
pub(crate) mod decimal;
pub(crate) mod float;
pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod timestamp;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::trouble::Trouble;
use crate::query::value::decimal::Decimal;
use crate::query::value::timestamp::Timestamp;

/// A value. Text is borrowed from the record where it can be.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    /// The record has no such field. Everywhere but in `IS MISSING` it is a null.
    Missing,
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(Decimal),
    Text(Cow<'a, str>),
    Time(Timestamp),
    /// A list or an object of JSON.
    Nested(&'a Json<'a>),
}

/// A value of JSON.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Between the largest `Int` and 2^64.
    Large(u64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    pub(crate) fn value(&'a self) -> Value<'a> {
        match self {
            Json::Null => Value::Null,
            Json::Bool(is) => Value::Bool(*is),
            Json::Int(number) => Value::Int(*number),
            Json::Large(number) => Value::Decimal(Decimal::of_int(i128::from(*number))),
            Json::Float(number) => Value::Float(*number),
            Json::Text(text) => Value::Text(Cow::Borrowed(text)),
            Json::List(_) | Json::Object(_) => Value::Nested(self),
        }
    }
}

/// A number for calculations.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Decimal(Decimal),
    Float(f64),
}

impl Number {
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Decimal(number) => number.to_f64(),
            Number::Float(number) => number,
        }
    }

    /// As a decimal, if it is one or a whole number.
    pub(crate) fn decimal(self) -> Option<Decimal> {
        match self {
            Number::Int(number) => Some(Decimal::of_int(i128::from(number))),
            Number::Decimal(number) => Some(number),
            Number::Float(_) => None,
        }
    }

    pub(crate) fn value(self) -> Value<'static> {
        match self {
            Number::Int(number) => Value::Int(number),
            Number::Decimal(number) => Value::Decimal(number),
            Number::Float(number) => Value::Float(number),
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
            _ => match (self.decimal(), other.decimal()) {
                (Some(left), Some(right)) => Some(left.compare(right)),
                _ => self.to_f64().partial_cmp(&other.to_f64()),
            },
        }
    }
}

/// The number that a text is: whole if it has the form of one, else of floating point.
pub(crate) fn number_of_text(text: &str) -> Result<Number, Trouble> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Ok(Number::Int(number));
    }
    // Not `inf` and `nan`, which are floats for the library.
    let is_number =
        text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let number = if is_number { text.parse::<f64>().ok() } else { None };
    number.filter(|number| number.is_finite()).map(Number::Float).ok_or_else(Trouble::conversion)
}

/// The truth that a text is.
pub(crate) fn bool_of_text(text: &str) -> Result<bool, Trouble> {
    let text = text.trim();
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(Trouble::conversion()),
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Missing | Value::Null)
    }

    /// Bytes of its text, which is what it costs to look at it; nothing for other types.
    pub(crate) fn weight(&self) -> u64 {
        if let Value::Text(text) = self { text.len() as u64 } else { 0 }
    }

    /// Two types compare as the later of these: text, truth, number, time. It is the order of
    /// Transact-SQL, to which the service's documents refer.
    fn precedence(&self) -> u8 {
        match self {
            Value::Missing | Value::Null => 0,
            Value::Text(_) => 1,
            Value::Bool(_) => 2,
            Value::Int(_) | Value::Decimal(_) | Value::Float(_) => 3,
            Value::Time(_) => 4,
            Value::Nested(_) => 5,
        }
    }

    /// The number that the value is or can be read as; not of a null.
    pub(crate) fn number(&self) -> Result<Number, Trouble> {
        match self {
            Value::Int(number) => Ok(Number::Int(*number)),
            Value::Float(number) => Ok(Number::Float(*number)),
            Value::Decimal(number) => Ok(Number::Decimal(*number)),
            Value::Bool(is) => Ok(Number::Int(i64::from(*is))),
            Value::Text(text) => number_of_text(text),
            Value::Missing | Value::Null | Value::Time(_) | Value::Nested(_) => {
                Err(Trouble::conversion())
            }
        }
    }

    /// The truth that the value is or can be read as; a number is true unless it is zero.
    pub(crate) fn truth(&self) -> Result<Option<bool>, Trouble> {
        match self {
            Value::Missing | Value::Null => Ok(None),
            Value::Bool(is) => Ok(Some(*is)),
            Value::Text(text) => bool_of_text(text).map(Some),
            Value::Int(number) => Ok(Some(*number != 0)),
            Value::Float(number) => Ok(Some(*number != 0.0)),
            Value::Decimal(number) => Ok(Some(number.unscaled() != 0)),
            Value::Time(_) | Value::Nested(_) => Err(Trouble::conversion()),
        }
    }

    /// The point in time that the value is or can be read as; not of a null.
    pub(crate) fn time(&self) -> Result<Timestamp, Trouble> {
        match self {
            Value::Time(time) => Ok(*time),
            Value::Text(text) => Timestamp::parse(text).ok_or_else(Trouble::conversion),
            Value::Missing | Value::Null | Value::Bool(_) | Value::Int(_) => {
                Err(Trouble::conversion())
            }
            Value::Float(_) | Value::Decimal(_) | Value::Nested(_) => Err(Trouble::conversion()),
        }
    }

    /// The order of two values, after the conversion of one to the type of the other. `None` if one
    /// is a null.
    pub(crate) fn compare(&self, other: &Value<'_>) -> Result<Option<Ordering>, Trouble> {
        if self.is_null() || other.is_null() {
            return Ok(None);
        }
        match self.precedence().max(other.precedence()) {
            1 => Ok(Some(self.written().cmp(&other.written()))),
            2 => Ok(self.truth()?.partial_cmp(&other.truth()?)),
            3 => Ok(self.number()?.compare(other.number()?)),
            4 => Ok(Some(self.time()?.micros().cmp(&other.time()?.micros()))),
            _ => Err(Trouble::conversion()),
        }
    }

    /// The value as text, as `CAST` and the output in delimited text write it. A null is empty.
    pub(crate) fn written(&self) -> Cow<'_, str> {
        match self {
            Value::Missing | Value::Null => Cow::Borrowed(""),
            Value::Bool(true) => Cow::Borrowed("true"),
            Value::Bool(false) => Cow::Borrowed("false"),
            Value::Int(number) => Cow::Owned(number.to_string()),
            Value::Float(number) => Cow::Owned(float::written(*number)),
            Value::Decimal(number) => Cow::Owned(number.to_string()),
            Value::Text(text) => Cow::Borrowed(text),
            Value::Time(time) => Cow::Owned(time.to_string()),
            Value::Nested(json) => {
                let mut out = Vec::new();
                write_json(&mut out, json);
                Cow::Owned(String::from_utf8_lossy(&out).into_owned())
            }
        }
    }

    /// The same without a borrow of the record; a list or an object becomes its text.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Missing => Value::Missing,
            Value::Null => Value::Null,
            Value::Bool(is) => Value::Bool(is),
            Value::Int(number) => Value::Int(number),
            Value::Float(number) => Value::Float(number),
            Value::Decimal(number) => Value::Decimal(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Time(time) => Value::Time(time),
            Value::Nested(_) => Value::Text(Cow::Owned(self.written().into_owned())),
        }
    }
}

/// Appends text in quotes.
pub(crate) fn write_json_text(out: &mut Vec<u8>, text: &str) {
    if serde_json::to_writer(&mut *out, text).is_err() {
        debug_assert!(false, "a vector takes all");
    }
}

/// Appends a number; infinite values and NaN become null.
fn write_json_float(out: &mut Vec<u8>, number: f64) {
    if serde_json::to_writer(&mut *out, &number).is_err() {
        debug_assert!(false, "a vector takes all");
    }
}

/// Appends a value without white space. Its depth is that of the parsed text, so it is bounded.
pub(crate) fn write_json(out: &mut Vec<u8>, json: &Json<'_>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(is) => out.extend_from_slice(if *is { b"true" } else { b"false" }),
        Json::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Json::Large(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Json::Float(number) => write_json_float(out, *number),
        Json::Text(text) => write_json_text(out, text),
        Json::List(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_json(out, item);
            }
            out.push(b']');
        }
        Json::Object(fields) => {
            out.push(b'{');
            for (at, (name, item)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_json_text(out, name);
                out.push(b':');
                write_json(out, item);
            }
            out.push(b'}');
        }
    }
}

/// Appends any value as JSON.
pub(crate) fn write_json_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Missing | Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(_) | Value::Int(_) | Value::Decimal(_) => {
            out.extend_from_slice(value.written().as_bytes());
        }
        Value::Float(number) => write_json_float(out, *number),
        Value::Text(text) => write_json_text(out, text),
        Value::Time(_) => write_json_text(out, &value.written()),
        Value::Nested(json) => write_json(out, json),
    }
}
