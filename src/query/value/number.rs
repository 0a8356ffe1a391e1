//! Calculation.

use crate::query::trouble::DIVIDE_BY_ZERO;
use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::timestamp::Part;
use crate::query::value::timestamp::Timestamp;

/// Bytes of text that `||` makes.
const TEXT_MAX: usize = 16 << 20;

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    /// `||`.
    Concatenate,
}

impl Arithmetic {
    /// Two whole numbers make a whole number, in a division too; else the result is a decimal or,
    /// if one of them is, a float. A decimal that would need more than 38 digits goes on as a
    /// float, as a sum does. Text is read as a number. `+` and `-` between a time and a number mean
    /// days, as documented. With a null the result is a null.
    pub(crate) fn apply<'a>(
        self,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<Value<'static>, Trouble> {
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
        match (self, left, right) {
            (Self::Concatenate, _, _) => return concatenated(left.clone(), right),
            (Self::Add, Value::Time(time), days) | (Self::Add, days, Value::Time(time)) => {
                return plus_days(*time, days, 1.0);
            }
            (Self::Subtract, Value::Time(time), days) => return plus_days(*time, days, -1.0),
            _ => {}
        }
        let (left, right) = (left.number()?, right.number()?);
        if matches!(self, Self::Divide | Self::Remainder) && right.to_f64() == 0.0 {
            return Err(Trouble::new(DIVIDE_BY_ZERO, "Division by zero."));
        }
        Ok(self.of_numbers(left, right)?.value())
    }

    fn of_numbers(self, left: Number, right: Number) -> Result<Number, Trouble> {
        if let (Number::Int(left), Number::Int(right)) = (left, right) {
            let result = match self {
                Self::Add => left.checked_add(right),
                Self::Subtract => left.checked_sub(right),
                Self::Multiply => left.checked_mul(right),
                Self::Divide => left.checked_div(right),
                Self::Remainder => left.checked_rem(right),
                Self::Concatenate => None,
            };
            return result.map(Number::Int).ok_or_else(Trouble::overflow);
        }
        if let (Some(left), Some(right)) = (left.decimal(), right.decimal()) {
            let result = match self {
                Self::Add => left.add(right),
                Self::Subtract => left.subtract(right),
                Self::Multiply => left.multiply(right),
                Self::Divide => left.divide(right),
                Self::Remainder => left.remainder(right),
                Self::Concatenate => None,
            };
            if let Some(result) = result {
                return Ok(Number::Decimal(result));
            }
        }
        let (left, right) = (left.to_f64(), right.to_f64());
        let result = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            Self::Concatenate => f64::NAN,
        };
        if result.is_finite() { Ok(Number::Float(result)) } else { Err(Trouble::overflow()) }
    }
}

/// Two values as text. The first one grows if it is text of its own; so a chain is not copied for
/// each part of it.
pub(crate) fn concatenated(left: Value<'_>, right: &Value<'_>) -> Result<Value<'static>, Trouble> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    let right = right.written();
    let mut text =
        if let Value::Text(text) = left { text.into_owned() } else { left.written().into_owned() };
    // Else a statement could make any amount of text out of a record.
    if text.len() + right.len() > TEXT_MAX {
        return Err(Trouble::overflow());
    }
    text.push_str(&right);
    Ok(Value::Text(text.into()))
}

/// A time and a number of days, which may have a fraction.
fn plus_days(time: Timestamp, days: &Value<'_>, sign: f64) -> Result<Value<'static>, Trouble> {
    let seconds = sign * days.number()?.to_f64() * 86_400.0;
    let seconds = whole(seconds).ok_or_else(Trouble::overflow)?;
    time.plus(Part::Second, seconds).map(Value::Time).ok_or_else(Trouble::overflow)
}

/// The whole number nearest to a float.
pub(crate) fn whole(number: f64) -> Option<i64> {
    // 2^63 is the first float that does not fit.
    let limit = 9_223_372_036_854_775_808.0;
    let rounded = number.round();
    #[expect(clippy::cast_possible_truncation, reason = "checked against the limits")]
    if rounded >= -limit && rounded < limit { Some(rounded as i64) } else { None }
}

/// A number with the other sign.
pub(crate) fn negated(value: &Value<'_>) -> Result<Value<'static>, Trouble> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    Ok(match value.number()? {
        Number::Int(number) => Value::Int(number.checked_neg().ok_or_else(Trouble::overflow)?),
        Number::Float(number) => Value::Float(-number),
        number @ Number::Decimal(_) => {
            Arithmetic::Subtract.of_numbers(Number::Int(0), number)?.value()
        }
    })
}
