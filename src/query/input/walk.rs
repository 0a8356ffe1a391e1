//! The values to which a path leads in the text of a record of JSON, one after the other.
//!
//! A record may have millions of them, so they are not all parsed, and the work can stop behind
//! each. The text was checked to be JSON; of other text, some values are found or none.

use std::ops::Range;

use serde::de::DeserializeSeed;

use crate::query::input::json::Text;
use crate::query::input::json::behind_nested;
use crate::query::input::json::behind_text;
use crate::query::sql::column::Access;

/// A list, each item of which leads to values.
#[derive(Debug)]
struct List {
    /// Behind the items that were walked.
    next: usize,
    /// The part of the path that goes on from an item.
    step: usize,
}

/// Finds the values of a record.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Lists within each other.
    lists: Vec<List>,
    is_begun: bool,
}

impl Walk {
    /// Where the next value is in the text of the record, which begins with its first byte.
    pub(crate) fn next(&mut self, record: &[u8], path: &[Access]) -> Option<Range<usize>> {
        if !std::mem::replace(&mut self.is_begun, true)
            && let Some(found) = self.enter(record, 0, path, 0)
        {
            return Some(found);
        }
        loop {
            let list = self.lists.last_mut()?;
            let Some(found) = item(record, list.next) else {
                self.lists.pop();
                continue;
            };
            list.next = found.end;
            let step = list.step;
            if let Some(found) = self.enter(record, found.start, path, step) {
                return Some(found);
            }
        }
    }

    /// The value to which the path leads from the value at `at`, unless it leads into all items of
    /// a list: then those are next.
    fn enter(
        &mut self,
        record: &[u8],
        mut at: usize,
        path: &[Access],
        step: usize,
    ) -> Option<Range<usize>> {
        for (step, access) in path.iter().enumerate().skip(step) {
            match (record.get(at)?, access) {
                (b'{', Access::Name { .. }) => at = field(record, at + 1, access)?,
                (b'[', Access::Index(index)) => {
                    at += 1;
                    for _ in 0..*index {
                        at = item(record, at)?.end;
                    }
                    at = item(record, at)?.start;
                }
                (b'[', Access::Each) => {
                    self.lists.push(List { next: at + 1, step: step + 1 });
                    return None;
                }
                _ => return None,
            }
        }
        value(record, at)
    }
}

/// The first byte from here that is neither white space nor this one.
fn skip(record: &[u8], at: usize, sign: u8) -> Option<usize> {
    let is_value = |byte: &u8| !byte.is_ascii_whitespace() && *byte != sign;
    record.get(at..)?.iter().position(is_value).map(|count| at + count)
}

/// The value that begins here.
fn value(record: &[u8], start: usize) -> Option<Range<usize>> {
    let end = match record.get(start)? {
        b'"' => behind_text(record, start + 1).min(record.len()),
        b'{' | b'[' => behind_nested(record, start)?,
        _ => {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
            let rest = record.get(start..)?;
            start + rest.iter().position(is_end).unwrap_or(rest.len())
        }
    };
    (end > start).then_some(start..end)
}

/// The item of a list that comes next.
fn item(record: &[u8], at: usize) -> Option<Range<usize>> {
    value(record, skip(record, at, b',')?)
}

/// Where the value of a field of an object begins, whose fields begin at `at`.
fn field(record: &[u8], mut at: usize, access: &Access) -> Option<usize> {
    loop {
        let name = item(record, at)?;
        let value_at = skip(record, name.end, b':')?;
        let mut from = serde_json::Deserializer::from_slice(&record[name]);
        if access.is_named(&Text.deserialize(&mut from).ok()?) {
            return Some(value_at);
        }
        at = value(record, value_at)?.end;
    }
}
