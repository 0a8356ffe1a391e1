//! Functions.

use std::borrow::Cow;

use crate::query::eval::fuel::Fuel;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::Trouble;
use crate::query::value::Value;
use crate::query::value::cast;
use crate::query::value::pattern;
use crate::query::value::timestamp::Part;

/// Ends of a text that `TRIM` shortens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Both,
    Leading,
    Trailing,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    NullIf,
    Coalesce,
    CharLength,
    Lower,
    Upper,
    Substring,
    Trim(Ends),
    DateAdd(Part),
    DateDiff(Part),
    Extract(Part),
    ToString,
    ToTimestamp,
    UtcNow,
}

impl Function {
    /// A function whose arguments are all expressions, by its name, and how many it takes.
    pub(crate) fn named(name: &str) -> Option<(Self, std::ops::RangeInclusive<usize>)> {
        Some(match name.to_ascii_uppercase().as_str() {
            "NULLIF" => (Self::NullIf, 2..=2),
            "COALESCE" => (Self::Coalesce, 1..=usize::MAX),
            "CHAR_LENGTH" | "CHARACTER_LENGTH" => (Self::CharLength, 1..=1),
            "LOWER" => (Self::Lower, 1..=1),
            "UPPER" => (Self::Upper, 1..=1),
            "SUBSTRING" => (Self::Substring, 2..=3),
            "TRIM" => (Self::Trim(Ends::Both), 1..=1),
            "TO_STRING" => (Self::ToString, 1..=2),
            "TO_TIMESTAMP" => (Self::ToTimestamp, 1..=1),
            "UTCNOW" => (Self::UtcNow, 0..=0),
            _ => return None,
        })
    }

    /// Units for a byte of its arguments.
    pub(crate) fn cost(self) -> u64 {
        match self {
            Self::NullIf | Self::Coalesce | Self::UtcNow | Self::CharLength => 1,
            Self::Trim(_) | Self::DateAdd(_) | Self::DateDiff(_) | Self::Extract(_) => 1,
            Self::ToTimestamp => 1,
            Self::Substring => 2,
            Self::Lower | Self::Upper => 4,
            // Each letter of a form is one of several numbers or names.
            Self::ToString => 16,
        }
    }

    /// The value for these values, none of which is a null. `COALESCE`, `NULLIF` and `UTCNOW` are
    /// not functions of values alone.
    pub(crate) fn of_values<'a>(
        self,
        mut values: Vec<Value<'a>>,
        fuel: &Fuel,
    ) -> Result<Value<'a>, Trouble> {
        let first = values.remove(0);
        match self {
            Self::CharLength => {
                let count = first.written().chars().count();
                i64::try_from(count).map(Value::Int).map_err(|_| Trouble::overflow())
            }
            Self::Lower => Ok(Value::Text(first.written().to_lowercase().into())),
            Self::Upper => Ok(Value::Text(first.written().to_uppercase().into())),
            Self::Substring => {
                let start = cast::int(&values[0])?;
                let count = values.get(1).map(cast::int).transpose()?;
                substring(&first.written(), start, count)
            }
            Self::Trim(ends) => trimmed(&first.written(), values.first(), ends, fuel),
            Self::DateAdd(part) => {
                let later = values[0].time()?.plus(part, cast::int(&first)?);
                later.map(Value::Time).ok_or_else(Trouble::overflow)
            }
            Self::DateDiff(part) => {
                let count = first.time()?.until(values[0].time()?, part);
                count.map(Value::Int).ok_or_else(Trouble::overflow)
            }
            Self::Extract(part) => Ok(Value::Int(first.time()?.part(part))),
            Self::ToString => match values.first() {
                Some(form) => {
                    let text = pattern::formatted(first.time()?, &form.written());
                    let wrong = || Trouble::new(INVALID_ARGUMENT, "The format is not known.");
                    text.map(|text| Value::Text(text.into())).ok_or_else(wrong)
                }
                None => Ok(Value::Text(first.written().into_owned().into())),
            },
            Self::ToTimestamp => first.time().map(Value::Time),
            Self::NullIf | Self::Coalesce | Self::UtcNow => Ok(Value::Null),
        }
    }
}

/// Characters from `start`, which counts from zero, as the documents' example has it. Positions
/// before the text or behind it are left out.
fn substring(text: &str, start: i64, count: Option<i64>) -> Result<Value<'static>, Trouble> {
    if count.is_some_and(|count| count < 0) {
        return Err(Trouble::new(INVALID_ARGUMENT, "The length of SUBSTRING is negative."));
    }
    let end = count.map_or(i64::MAX, |count| start.saturating_add(count));
    let size = |position: i64| usize::try_from(position.max(0)).unwrap_or(usize::MAX);
    let (start, end) = (size(start), size(end));
    let part: String = text.chars().take(end).skip(start).collect();
    Ok(Value::Text(part.into()))
}

/// Without the given characters at its ends; without blanks if none are given.
fn trimmed<'a>(
    text: &str,
    what: Option<&Value<'_>>,
    ends: Ends,
    fuel: &Fuel,
) -> Result<Value<'a>, Trouble> {
    let what = what.map_or(Cow::Borrowed(" "), Value::written);
    let cost = 1 + what.len() as u64;
    let is_left_out = |c: char| fuel.spend(cost).is_ok() && what.contains(c);
    let text = match ends {
        Ends::Both => text.trim_matches(is_left_out),
        Ends::Leading => text.trim_start_matches(is_left_out),
        Ends::Trailing => text.trim_end_matches(is_left_out),
    };
    // Without fuel no character was left out any more.
    fuel.spend(0)?;
    Ok(Value::Text(text.to_owned().into()))
}
