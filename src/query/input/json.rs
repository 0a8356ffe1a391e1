//! JSON: where a record ends, and the values in it.
//!
//! Records are objects. White space and separators between them are left out, so a record may also
//! be written over several lines. If a list is found in place of a record, its items are the
//! records.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use memchr::memchr2;
use serde::de::DeserializeSeed;
use serde::de::Deserializer;
use serde::de::Error;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;

use crate::query::eval::Row;
use crate::query::request::Fault;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::trouble::INVALID_TYPE_CONVERSION;
use crate::query::trouble::PARSE_ERROR;
use crate::query::trouble::RECORD_TOO_LARGE;
use crate::query::trouble::Trouble;
use crate::query::value::Json;
use crate::query::value::Value;

/// Values that are taken in of a record, or of a value to which `FROM` leads: with their names they
/// have about 8 MiB in memory, beside texts.
const VALUES_MAX: usize = 128 * 1024;

/// The result of the scanner at the front of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A record.
    Record(std::ops::Range<usize>),
    /// Only bytes between records, and their number.
    Nothing(usize),
    /// More bytes are needed, behind this number of bytes between records.
    More(usize),
}

/// Finds records.
#[derive(Debug, Clone)]
pub(crate) struct Scanner {
    separator: Vec<u8>,
    is_in_list: bool,
}

impl Scanner {
    pub(crate) fn new(separator: &str) -> Self {
        Self { separator: separator.as_bytes().to_vec(), is_in_list: false }
    }

    /// The record at the front; the fault's position counts from the front.
    pub(crate) fn find(&mut self, bytes: &[u8], is_end: bool) -> Result<Found, Fault> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b',' if self.is_in_list => {}
                b']' if self.is_in_list => self.is_in_list = false,
                b'[' if !self.is_in_list => self.is_in_list = true,
                b'{' | b'[' => return Ok(nested(bytes, at, is_end)),
                byte if self.separator.contains(byte) => {}
                _ => return self.scalar(bytes, at, is_end),
            }
            at += 1;
        }
        if is_end && self.is_in_list {
            return Err(Fault::fatal(PARSE_ERROR, "Malformed JSON: a list is cut off.", at as u64));
        }
        Ok(Found::Nothing(at))
    }

    /// A value that is neither an object nor a list: a record only in a list.
    fn scalar(&self, bytes: &[u8], start: usize, is_end: bool) -> Result<Found, Fault> {
        let end = match bytes[start] {
            b'"' => behind_text(bytes, start + 1),
            _ => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let rest = &bytes[start..];
                let count = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                start + count
            }
        };
        if end >= bytes.len() && !is_end {
            return Ok(Found::More(start));
        }
        let end = end.min(bytes.len());
        if self.is_in_list && end > start {
            return Ok(Found::Record(start..end));
        }
        let token = match bytes[end..].first() {
            Some(byte) => format!("token '{}'", char::from(*byte)),
            None => "end".to_owned(),
        };
        let byte = end - start;
        let text = format!("Unexpected {token} at [byte: {byte}]. Expecting tokens '{{', or '['.");
        Err(Fault::fatal(PARSE_ERROR, text, start as u64))
    }
}

/// Where a text ends that began before `at`: behind its quote, or behind all bytes.
pub(crate) fn behind_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len() + 1
}

/// Where the object or list at `start` ends; `None` if that is not there.
pub(crate) fn behind_nested(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => at = behind_text(bytes, at),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The object or list at `start`.
fn nested(bytes: &[u8], start: usize, is_end: bool) -> Found {
    match behind_nested(bytes, start) {
        Some(end) => Found::Record(start..end),
        None if is_end => Found::Record(start..bytes.len()),
        None => Found::More(start),
    }
}

/// Takes in a value; of an object, only the fields that are wanted.
struct Wanted<'w> {
    is_wanted: &'w dyn Fn(&str) -> bool,
    /// Values that may still be taken in.
    left: &'w Cell<Option<usize>>,
}

impl Wanted<'_> {
    /// The same for a value inside of it, of which all is wanted.
    fn inner(&self) -> Wanted<'_> {
        Wanted { is_wanted: &|_| true, left: self.left }
    }
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json<'de>, D::Error> {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(1)));
        match self.left.get() {
            Some(_) => from.deserialize_any(self),
            None => Err(D::Error::custom("it has too many values")),
        }
    }
}

/// A text, borrowed if it has no escapes.
pub(crate) struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(is))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(i64::try_from(number).map_or(Json::Large(number), Json::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = from.next_key_seed(Text)? {
            if (self.is_wanted)(&name) {
                fields.push((name, from.next_value_seed(self.inner())?));
            } else {
                from.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Json::Object(fields))
    }
}

/// Reads a record. Of an object it takes in the fields that are wanted. It may not be deeper than
/// 128 objects and lists.
///
/// # Errors
///
/// A fault that is not fatal, when the record has more than [`VALUES_MAX`] values, or a number that
/// is beyond those of floating point, such as `1e400`.
pub(crate) fn parse<'a>(
    bytes: &'a [u8],
    is_wanted: &dyn Fn(&str) -> bool,
    position: u64,
) -> Result<Json<'a>, Fault> {
    let left = Cell::new(Some(VALUES_MAX));
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let parsed = Wanted { is_wanted, left: &left }.deserialize(&mut from);
    parsed.and_then(|json| from.end().map(|()| json)).map_err(|error| {
        if left.get().is_none() {
            let text = format!("A record has more than {VALUES_MAX} values.");
            return Fault::of_record(RECORD_TOO_LARGE, text, position);
        }
        let text = error.to_string();
        // The library has no other way to distinguish it from invalid JSON.
        if text.starts_with("number out of range") {
            let text = "A number is out of range.";
            return Fault::of_record(INVALID_TYPE_CONVERSION, text, position);
        }
        Fault::fatal(PARSE_ERROR, format!("Malformed JSON: {text}."), position)
    })
}

/// Checks that the bytes are JSON, without taking anything in.
pub(crate) fn check(bytes: &[u8], position: u64) -> Result<(), Fault> {
    let checked = serde_json::from_slice::<IgnoredAny>(bytes).map(|_| ());
    let fault = |error| Fault::fatal(PARSE_ERROR, format!("Malformed JSON: {error}."), position);
    checked.map_err(fault)
}

/// The value to which a step leads.
fn inside<'j>(json: &'j Json<'j>, access: &Access) -> Option<&'j Json<'j>> {
    match (json, access) {
        (Json::Object(fields), Access::Name { .. }) => {
            let field = fields.iter().find(|(name, _)| access.is_named(name));
            field.map(|(_, value)| value)
        }
        (Json::List(items), Access::Index(at)) => items.get(*at),
        _ => None,
    }
}

/// A record of JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) json: &'a Json<'a>,
    pub(crate) columns: &'a [Column],
    /// The record as it is written, if it is a whole one.
    pub(crate) written: Option<&'a [u8]>,
}

impl Row for Record<'_> {
    /// The names of the path are compared with those of fields.
    fn cost(&self, column: usize) -> u64 {
        let path = &self.columns[column].path;
        let (mut json, mut cost) = (self.json, 0);
        for (at, access) in path.iter().enumerate() {
            if let Json::Object(all) = json {
                cost += (all.len() * (1 + access.name_len())) as u64;
            }
            if at + 1 == path.len() {
                break;
            }
            match inside(json, access) {
                Some(value) => json = value,
                None => break,
            }
        }
        cost
    }

    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        let column = &self.columns[column];
        let mut json = self.json;
        // A record that is not an object has one column.
        if !matches!(json, Json::Object(_)) && column.ordinal() == Some(1) {
            return Ok(json.value());
        }
        for access in &column.path {
            match inside(json, access) {
                Some(value) => json = value,
                None => return Ok(Value::Missing),
            }
        }
        Ok(json.value())
    }
}

/// Appends JSON without the white space between its parts.
pub(crate) fn write_compact(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let is_text = bytes[at] == b'"';
        let end = if is_text { behind_text(bytes, at + 1).min(bytes.len()) } else { at + 1 };
        if !bytes[at].is_ascii_whitespace() {
            out.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
}
