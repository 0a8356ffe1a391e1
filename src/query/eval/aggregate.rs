//! Aggregates: one value from all records.

use crate::query::eval::Expression;
use crate::query::eval::Scope;
use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::number::Arithmetic;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Sum,
    Average,
    Min,
    Max,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "COUNT" => Self::Count,
            "SUM" => Self::Sum,
            // The documents have the long name; SQL has the short one.
            "AVG" | "AVERAGE" => Self::Average,
            "MIN" => Self::Min,
            "MAX" => Self::Max,
            _ => return None,
        })
    }
}

/// An aggregate of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Aggregate {
    pub(crate) kind: Kind,
    /// `None` in `COUNT(*)`.
    pub(crate) operand: Option<Expression>,
}

/// What an aggregate knows of the records so far. Its size does not depend on their number.
#[derive(Debug, Clone)]
pub(crate) struct State {
    kind: Kind,
    count: i64,
    /// The sum, or the smallest or largest value.
    value: Value<'static>,
}

impl State {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        Self { kind: aggregate.kind, count: 0, value: Value::Null }
    }

    /// What a record adds; nothing if its value is a null.
    pub(crate) fn operand<'a>(
        aggregate: &'a Aggregate,
        scope: Scope<'a>,
    ) -> Result<Value<'a>, Trouble> {
        let value = match &aggregate.operand {
            None => return Ok(Value::Bool(true)),
            Some(operand) => operand.value(scope)?,
        };
        let is_sum = matches!(aggregate.kind, Kind::Sum | Kind::Average);
        // A value that is no number is a fault of this record, not of the sum.
        if is_sum && !value.is_null() { Ok(value.number()?.value()) } else { Ok(value) }
    }

    /// Takes a record in. A sum of whole numbers that no longer fits goes on as a float.
    pub(crate) fn add(&mut self, value: Value<'_>) -> Result<(), Trouble> {
        if value.is_null() {
            return Ok(());
        }
        let is_first = self.count == 0;
        match self.kind {
            Kind::Count => {}
            _ if is_first => self.value = value.into_owned(),
            Kind::Sum | Kind::Average => {
                self.value = match Arithmetic::Add.apply(&self.value, &value) {
                    Ok(sum) => sum,
                    Err(_) => {
                        let sum = self.value.number()?.to_f64() + value.number()?.to_f64();
                        Value::Float(sum)
                    }
                }
            }
            Kind::Min | Kind::Max => {
                let order = value.compare(&self.value)?;
                let is_min = self.kind == Kind::Min;
                let is_beyond = |order: std::cmp::Ordering| {
                    if is_min { order.is_lt() } else { order.is_gt() }
                };
                if order.is_some_and(is_beyond) {
                    self.value = value.into_owned();
                }
            }
        }
        self.count += 1;
        Ok(())
    }

    /// The result. A count of nothing is zero, everything else of nothing is a null. An average is
    /// not cut off to a whole number.
    pub(crate) fn result(&self) -> Result<Value<'static>, Trouble> {
        match self.kind {
            Kind::Count => Ok(Value::Int(self.count)),
            Kind::Average if self.count > 0 => match self.value.number()? {
                sum @ Number::Decimal(_) => {
                    Arithmetic::Divide.apply(&sum.value(), &Value::Int(self.count))
                }
                sum @ (Number::Int(_) | Number::Float(_)) => {
                    Ok(Value::Float(sum.to_f64() / self.count as f64))
                }
            },
            Kind::Sum | Kind::Average | Kind::Min | Kind::Max => Ok(self.value.clone()),
        }
    }
}
