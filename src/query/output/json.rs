//! JSON, an object for each record.

use crate::query::input::json::write_compact;
use crate::query::value::Value;
use crate::query::value::write_json_text;
use crate::query::value::write_json_value;

/// Writes JSON. A field that the record does not have is left out, as the service leaves it out.
#[derive(Debug)]
pub(crate) struct Json {
    separator: Vec<u8>,
    is_first: bool,
}

impl Json {
    pub(crate) fn new(separator: &str) -> Self {
        let separator = if separator.is_empty() { "\n" } else { separator };
        Self { separator: separator.as_bytes().to_vec(), is_first: true }
    }

    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.is_first = true;
    }

    pub(crate) fn cell(&mut self, out: &mut Vec<u8>, name: &str, value: &Value<'_>) {
        if matches!(value, Value::Missing) {
            return;
        }
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        write_json_text(out, name);
        out.push(b':');
        write_json_value(out, value);
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
