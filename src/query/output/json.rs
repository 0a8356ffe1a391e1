//! JSON, an object for each record.

use crate::query::input::json::write_compact;
use crate::query::output::bound::WRITTEN_MAX;
use crate::query::output::bound::bounded;
use crate::query::trouble::Trouble;
use crate::query::value::Value;
use crate::query::value::write_json_text;
use crate::query::value::write_json_value;

/// Bytes of a character that is longest in JSON beside what it was: `\u0001`.
const LONGEST: usize = 6;

/// Writes JSON. A field that the record does not have is left out, as the service leaves it out.
#[derive(Debug)]
pub(crate) struct Json {
    separator: Vec<u8>,
    is_first: bool,
    /// How long the answer may be with the record.
    end: usize,
}

/// Bytes of a text in JSON, without its quotes.
fn escaped(text: &str) -> usize {
    let length = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => LONGEST,
        _ => 1,
    };
    text.bytes().map(length).sum()
}

impl Json {
    pub(crate) fn new(separator: &str) -> Self {
        let separator = if separator.is_empty() { "\n" } else { separator };
        Self { separator: separator.as_bytes().to_vec(), is_first: true, end: 0 }
    }

    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        self.end = out.len().saturating_add(WRITTEN_MAX);
        out.push(b'{');
        self.is_first = true;
    }

    /// Whether a text fits into the record before it is written: it may become six times as long.
    /// Values of JSON are about as long as they were there.
    fn fit(&self, out: &[u8], text: &str) -> Result<(), Trouble> {
        if out.len().saturating_add(text.len().saturating_mul(LONGEST)) <= self.end {
            return Ok(());
        }
        bounded(out.len().saturating_add(escaped(text)), self.end)
    }

    pub(crate) fn cell(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        value: &Value<'_>,
    ) -> Result<(), Trouble> {
        if matches!(value, Value::Missing) {
            return Ok(());
        }
        self.fit(out, name)?;
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        write_json_text(out, name);
        out.push(b':');
        if let Value::Text(text) = value {
            self.fit(out, text)?;
        }
        write_json_value(out, value);
        Ok(())
    }

    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        out.push(b'}');
        out.extend_from_slice(&self.separator);
    }

    pub(crate) fn whole(&self, out: &mut Vec<u8>, record: &[u8]) {
        write_compact(out, record);
        out.extend_from_slice(&self.separator);
    }
}
