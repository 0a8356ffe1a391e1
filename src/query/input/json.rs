//! JSON: where a record ends, and the values in it.
//!
//! Records are objects. White space and separators between them are left out, so a record may also
//! be written over several lines. If a list is found in place of a record, its items are the
//! records.

use std::borrow::Cow;
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
use crate::query::trouble::PARSE_ERROR;
use crate::query::trouble::Trouble;
use crate::query::value::Json;
use crate::query::value::Value;

/// What the scanner found at the front of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A record.
    Record(std::ops::Range<usize>),
    /// Nothing but so many bytes between records.
    Nothing(usize),
    /// More bytes are needed, behind so many between records.
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
fn behind_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len() + 1
}

/// The object or list at `start`.
fn nested(bytes: &[u8], start: usize, is_end: bool) -> Found {
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
            return Found::Record(start..at);
        }
    }
    if is_end { Found::Record(start..bytes.len()) } else { Found::More(start) }
}

/// Takes in any value.
struct Any;

/// Takes in a value; of an object, only the fields that are wanted.
struct Wanted<'w>(&'w dyn Fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json<'de>, D::Error> {
        from.deserialize_any(Wanted(&|_| true))
    }
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

/// A text, borrowed if it has no escapes.
struct Text;

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
        while let Some(item) = from.next_element_seed(Any)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = from.next_key_seed(Text)? {
            if (self.0)(&name) {
                fields.push((name, from.next_value_seed(Any)?));
            } else {
                from.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Json::Object(fields))
    }
}

/// Reads a record. Of an object it takes in the fields that are wanted. It may not be deeper than
/// 128 objects and lists.
pub(crate) fn parse<'a>(
    bytes: &'a [u8],
    wanted: &dyn Fn(&str) -> bool,
    position: u64,
) -> Result<Json<'a>, Fault> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let parsed = Wanted(wanted).deserialize(&mut from).and_then(|json| from.end().map(|()| json));
    parsed.map_err(|error| Fault::fatal(PARSE_ERROR, format!("Malformed JSON: {error}."), position))
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

/// Calls `each` with every value to which a path leads.
pub(crate) fn walk<'j>(
    json: &'j Json<'j>,
    path: &[Access],
    each: &mut dyn FnMut(&'j Json<'j>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    match (path.split_first(), json) {
        (None, _) => each(json),
        (Some((Access::Each, rest)), Json::List(items)) => {
            items.iter().try_for_each(|item| walk(item, rest, each))
        }
        (Some((access, rest)), _) => match inside(json, access) {
            Some(value) => walk(value, rest, each),
            None => Ok(()),
        },
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
    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        let column = &self.columns[column];
        let mut json = self.json;
        // A record that is no object has one column.
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
