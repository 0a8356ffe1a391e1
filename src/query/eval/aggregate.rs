//! Aggregates: one value from all records.

use std::cmp::Ordering;

use crate::query::eval::Expression;
use crate::query::eval::Scope;
use crate::query::eval::compared;
use crate::query::eval::flat;
use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::number::Arithmetic;

/// The aggregate function.
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

/// The change of an aggregate by a record.
#[derive(Debug)]
pub(crate) enum Change<'a> {
    /// The record does not count.
    Nothing,
    /// It counts, and the value stays.
    Counted,
    Value(Value<'a>),
}

/// The state of an aggregate over the records so far. Its size does not depend on their number.
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

    /// The value that a record adds; `None` for a null.
    pub(crate) fn operand<'a>(
        aggregate: &'a Aggregate,
        scope: Scope<'a>,
    ) -> Result<Value<'a>, Trouble> {
        let value = match &aggregate.operand {
            None => return Ok(Value::Bool(true)),
            Some(operand) => operand.value(scope)?,
        };
        let is_sum = matches!(aggregate.kind, Kind::Sum | Kind::Average);
        // A value that is not a number is a fault of this record, not of the sum.
        if !is_sum || value.is_null() {
            return Ok(value);
        }
        scope.spend(value.weight())?;
        Ok(value.number()?.value())
    }

    /// The change that a value would make; the aggregate itself does not change. A sum of whole
    /// numbers that overflows continues as a float. NaN is neither small nor large.
    pub(crate) fn change<'a>(
        &self,
        value: Value<'a>,
        scope: Scope<'_>,
    ) -> Result<Change<'a>, Trouble> {
        let is_extreme = matches!(self.kind, Kind::Min | Kind::Max);
        let is_nan = matches!(value, Value::Float(number) if number.is_nan());
        if value.is_null() || (is_extreme && is_nan) {
            return Ok(Change::Nothing);
        }
        let is_first = self.count == 0;
        match self.kind {
            Kind::Count => Ok(Change::Counted),
            Kind::Sum | Kind::Average | Kind::Min | Kind::Max if is_first => {
                Ok(Change::Value(flat(value, scope)?))
            }
            Kind::Sum | Kind::Average => Ok(Change::Value(self.sum(&value)?)),
            Kind::Min | Kind::Max => {
                let order = compared(&value, &self.value, scope)?;
                let beyond =
                    if self.kind == Kind::Min { Ordering::Less } else { Ordering::Greater };
                Ok(if order == Some(beyond) { Change::Value(value) } else { Change::Counted })
            }
        }
    }

    fn sum(&self, value: &Value<'_>) -> Result<Value<'static>, Trouble> {
        match Arithmetic::Add.apply(&self.value, value) {
            Ok(sum) => Ok(sum),
            Err(_) => {
                let sum = self.value.number()?.to_f64() + value.number()?.to_f64();
                Ok(Value::Float(sum))
            }
        }
    }

    /// Takes a record in.
    pub(crate) fn commit(&mut self, change: Change<'_>) {
        match change {
            Change::Nothing => {}
            Change::Counted => self.count += 1,
            Change::Value(value) => {
                self.value = value.into_owned();
                self.count += 1;
            }
        }
    }

    /// Bytes that it has after a change.
    pub(crate) fn weight(&self, change: &Change<'_>) -> u64 {
        match change {
            Change::Nothing | Change::Counted => self.value.weight(),
            // The old value is there until the new one is taken in.
            Change::Value(value) => self.value.weight() + value.weight(),
        }
    }

    /// The result. A count of nothing is zero, everything else of nothing is a null. An average is
    /// not cut off to a whole number.
    pub(crate) fn result(self) -> Result<Value<'static>, Trouble> {
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
            Kind::Sum | Kind::Average | Kind::Min | Kind::Max => Ok(self.value),
        }
    }
}
