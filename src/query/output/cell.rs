//! Values on their way into the answer.

use std::borrow::Cow;

use crate::query::input::delimited::text;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

/// A value on its way into the answer.
#[derive(Debug, Clone)]
pub(crate) enum Cell<'a> {
    Value(Value<'a>),
    /// A field of delimited text, which need not be UTF-8.
    Raw(Cow<'a, [u8]>),
}

impl<'a> Cell<'a> {
    pub(crate) fn value(self) -> Result<Value<'a>, Trouble> {
        match self {
            Cell::Value(value) => Ok(value),
            Cell::Raw(field) => text(field).map(Value::Text),
        }
    }
}
