//! Expressions and what they become for one record.

pub(crate) mod aggregate;
pub(crate) mod function;
pub(crate) mod like;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::eval::function::Function;
use crate::query::trouble::Trouble;
use crate::query::value::Value;
use crate::query::value::cast::Type;
use crate::query::value::number;
use crate::query::value::number::Arithmetic;
use crate::query::value::timestamp::Timestamp;

/// A record. It finds the value of a column only when it is asked for it.
pub(crate) trait Row {
    /// The value of a column of the plan.
    fn column(&self, column: usize) -> Result<Value<'_>, Trouble>;
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// An expression. Its depth is bounded by the parser, so it may be walked by recursion.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    Literal(Value<'static>),
    /// A column of the plan.
    Column(usize),
    /// The result of an aggregate of the plan.
    Aggregate(usize),
    Compare(Comparison, Box<[Expression; 2]>),
    /// From left to right.
    Calculate(Box<Expression>, Vec<(Arithmetic, Expression)>),
    Negate(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    /// A value, the lowest and the highest.
    Between(Box<[Expression; 3]>),
    In(Box<Expression>, Vec<Expression>),
    IsNull(Box<Expression>),
    IsMissing(Box<Expression>),
    IsTruth(Box<Expression>, bool),
    Like(Box<Like>),
    Case(Box<Case>),
    Cast(Box<Expression>, Type),
    Call(Function, Vec<Expression>),
}

/// `CASE`. With an operand, a condition is a value that it equals.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// It is evaluated once, not for each branch.
    pub(crate) operand: Option<Expression>,
    /// Conditions with their results.
    pub(crate) branches: Vec<(Expression, Expression)>,
    /// The result if none holds.
    pub(crate) otherwise: Option<Expression>,
}

/// A text, a pattern, and the character that takes the meaning from the next one.
#[derive(Debug, Clone)]
pub(crate) struct Like {
    pub(crate) text: Expression,
    pub(crate) pattern: Expression,
    pub(crate) escape: Option<char>,
    /// The pattern, if it is the same for all records.
    pub(crate) prepared: Option<Vec<like::Part>>,
}

/// Where an expression is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) row: &'a dyn Row,
    /// Results of the aggregates of the plan, at the end.
    pub(crate) aggregates: &'a [Value<'static>],
    pub(crate) now_unix_millis: i64,
}

fn truth_value<'a>(truth: Option<bool>) -> Value<'a> {
    truth.map_or(Value::Null, Value::Bool)
}

impl Expression {
    /// The value for a record.
    pub(crate) fn value<'a>(&'a self, scope: Scope<'a>) -> Result<Value<'a>, Trouble> {
        match self {
            Self::Literal(value) => Ok(borrowed(value)),
            Self::Column(column) => scope.row.column(*column),
            Self::Aggregate(at) => Ok(scope.aggregates.get(*at).map_or(Value::Null, borrowed)),
            Self::Calculate(first, rest) => {
                let mut sum = first.value(scope)?;
                for (operator, operand) in rest {
                    sum = operator.apply(&sum, &operand.value(scope)?)?;
                }
                Ok(sum)
            }
            Self::Negate(operand) => number::negated(&operand.value(scope)?),
            Self::And(operands) => all(operands, scope),
            Self::Or(operands) => any(operands, scope),
            Self::Case(case) => case.value(scope),
            Self::Cast(operand, kind) => kind.cast(operand.value(scope)?),
            Self::Call(function, arguments) => call(*function, arguments, scope),
            Self::Compare(..)
            | Self::Not(_)
            | Self::Between(_)
            | Self::In(..)
            | Self::IsNull(_)
            | Self::IsMissing(_)
            | Self::IsTruth(..)
            | Self::Like(_) => Ok(truth_value(self.truth(scope)?)),
        }
    }

    /// Whether the expression holds for a record; `None` if that is unknown because of a null.
    pub(crate) fn truth(&self, scope: Scope<'_>) -> Result<Option<bool>, Trouble> {
        match self {
            Self::Compare(comparison, operands) => {
                let order = operands[0].value(scope)?.compare(&operands[1].value(scope)?)?;
                Ok(order.map(|order| comparison.holds(order)))
            }
            Self::Not(operand) => Ok(operand.truth(scope)?.map(|is| !is)),
            Self::Between(operands) => {
                let value = operands[0].value(scope)?;
                let low = value.compare(&operands[1].value(scope)?)?.map(Ordering::is_ge);
                let high = value.compare(&operands[2].value(scope)?)?.map(Ordering::is_le);
                Ok(match (low, high) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                })
            }
            Self::In(operand, list) => is_in(operand, list, scope),
            Self::IsNull(operand) => Ok(Some(operand.value(scope)?.is_null())),
            Self::IsMissing(operand) => Ok(Some(matches!(operand.value(scope)?, Value::Missing))),
            Self::IsTruth(operand, is) => Ok(Some(operand.truth(scope)? == Some(*is))),
            Self::Like(like) => like.truth(scope),
            Self::Literal(_)
            | Self::Column(_)
            | Self::Aggregate(_)
            | Self::Calculate(..)
            | Self::Negate(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Case(_)
            | Self::Cast(..)
            | Self::Call(..) => self.value(scope)?.truth(),
        }
    }
}

/// A value that borrows from another one.
fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    if let Value::Text(text) = value { Value::text(text) } else { value.clone() }
}

/// False if one is false, unknown if one is unknown, else true. Two whole numbers are combined bit
/// by bit, as documented.
fn all<'a>(operands: &'a [Expression], scope: Scope<'a>) -> Result<Value<'a>, Trouble> {
    let mut result = Value::Bool(true);
    for (at, operand) in operands.iter().enumerate() {
        let value = operand.value(scope)?;
        result = match (&result, &value) {
            (_, Value::Int(_)) if at == 0 => value,
            (Value::Int(left), Value::Int(right)) => Value::Int(left & right),
            _ => match (result.truth()?, value.truth()?) {
                (Some(false), _) | (_, Some(false)) => return Ok(Value::Bool(false)),
                (Some(true), Some(true)) => Value::Bool(true),
                _ => Value::Null,
            },
        };
    }
    Ok(result)
}

/// True if one is true, unknown if one is unknown, else false; numbers as above.
fn any<'a>(operands: &'a [Expression], scope: Scope<'a>) -> Result<Value<'a>, Trouble> {
    let mut result = Value::Bool(false);
    for (at, operand) in operands.iter().enumerate() {
        let value = operand.value(scope)?;
        result = match (&result, &value) {
            (_, Value::Int(_)) if at == 0 => value,
            (Value::Int(left), Value::Int(right)) => Value::Int(left | right),
            _ => match (result.truth()?, value.truth()?) {
                (Some(true), _) | (_, Some(true)) => return Ok(Value::Bool(true)),
                (Some(false), Some(false)) => Value::Bool(false),
                _ => Value::Null,
            },
        };
    }
    Ok(result)
}

fn is_in(
    operand: &Expression,
    list: &[Expression],
    scope: Scope<'_>,
) -> Result<Option<bool>, Trouble> {
    let value = operand.value(scope)?;
    let mut is_unknown = false;
    for item in list {
        match value.compare(&item.value(scope)?)? {
            Some(Ordering::Equal) => return Ok(Some(true)),
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    Ok(if is_unknown { None } else { Some(false) })
}

/// The value of a call. With a null as an argument it is a null, except for `COALESCE` and
/// `NULLIF`.
fn call<'a>(
    function: Function,
    arguments: &'a [Expression],
    scope: Scope<'a>,
) -> Result<Value<'a>, Trouble> {
    if function == Function::Coalesce {
        for argument in arguments {
            let value = argument.value(scope)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        return Ok(Value::Null);
    }
    if function == Function::UtcNow {
        let now = Timestamp::of_millis(scope.now_unix_millis);
        return now.map(Value::Time).ok_or_else(Trouble::overflow);
    }
    let values: Result<Vec<Value<'a>>, Trouble> =
        arguments.iter().map(|argument| argument.value(scope)).collect();
    let mut values = values?;
    if function == Function::NullIf {
        let order = values[0].compare(&values[1])?;
        let is_equal = order.is_some_and(Ordering::is_eq);
        return Ok(if is_equal { Value::Null } else { values.swap_remove(0) });
    }
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    function.of_values(values)
}

impl Case {
    fn value<'a>(&'a self, scope: Scope<'a>) -> Result<Value<'a>, Trouble> {
        let operand = match &self.operand {
            Some(operand) => Some(operand.value(scope)?),
            None => None,
        };
        for (condition, result) in &self.branches {
            let holds = match &operand {
                Some(operand) => {
                    operand.compare(&condition.value(scope)?)? == Some(Ordering::Equal)
                }
                None => condition.truth(scope)? == Some(true),
            };
            if holds {
                return result.value(scope);
            }
        }
        self.otherwise.as_ref().map_or(Ok(Value::Null), |result| result.value(scope))
    }
}

impl Like {
    pub(crate) fn truth(&self, scope: Scope<'_>) -> Result<Option<bool>, Trouble> {
        let text = self.text.value(scope)?;
        if text.is_null() {
            return Ok(None);
        }
        let parts = match &self.prepared {
            Some(parts) => Cow::Borrowed(parts),
            None => {
                let pattern = self.pattern.value(scope)?;
                if pattern.is_null() {
                    return Ok(None);
                }
                Cow::Owned(like::parts(&pattern.written(), self.escape)?)
            }
        };
        Ok(Some(like::fits(&text.written(), &parts)))
    }
}
