//! Expressions, and their evaluation for one record.

pub(crate) mod aggregate;
pub(crate) mod fuel;
pub(crate) mod function;
pub(crate) mod like;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::eval::fuel::DECIMAL;
use crate::query::eval::fuel::Fuel;
use crate::query::eval::fuel::NODE;
use crate::query::eval::function::Function;
use crate::query::eval::like::Pattern;
use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::cast::Type;
use crate::query::value::number;
use crate::query::value::number::Arithmetic;
use crate::query::value::number_of_text;
use crate::query::value::timestamp::Timestamp;

/// A record. It finds the value of a column only when it is requested.
pub(crate) trait Row {
    /// The cost of finding a column, beside its value.
    fn cost(&self, _column: usize) -> u64 {
        0
    }

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
    In(Box<Expression>, List),
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
    pub(crate) prepared: Option<Pattern>,
}

/// Where an expression is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) row: &'a dyn Row,
    /// Results of the aggregates of the plan, at the end.
    pub(crate) aggregates: &'a [Value<'static>],
    pub(crate) now_unix_millis: i64,
    pub(crate) fuel: &'a Fuel,
}

impl Scope<'_> {
    fn spend(self, units: u64) -> Result<(), Trouble> {
        self.fuel.spend(units)
    }
}

/// The order of two values. It costs what is looked at: of two texts as much as the shorter one
/// has, else the text that is converted.
fn compared(
    left: &Value<'_>,
    right: &Value<'_>,
    scope: Scope<'_>,
) -> Result<Option<Ordering>, Trouble> {
    scope.spend(match (left, right) {
        (Value::Text(left), Value::Text(right)) => left.len().min(right.len()) as u64,
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => DECIMAL + left.weight() + right.weight(),
        _ => left.weight() + right.weight(),
    })?;
    left.compare(right)
}

/// The value; a list or an object of JSON as its text.
fn flat<'a>(value: Value<'a>, scope: Scope<'_>) -> Result<Value<'a>, Trouble> {
    let Value::Nested(_) = value else { return Ok(value) };
    let text = value.into_owned();
    scope.spend(2 * text.weight())?;
    Ok(text)
}

fn calculated(
    operator: Arithmetic,
    left: Value<'_>,
    right: Value<'_>,
    scope: Scope<'_>,
) -> Result<Value<'static>, Trouble> {
    if operator != Arithmetic::Concatenate {
        let is_slow = [&left, &right].iter().any(|side| matches!(side, Value::Decimal(_)));
        let slow = if is_slow { DECIMAL } else { 0 };
        scope.spend(left.weight() + right.weight() + slow)?;
        return operator.apply(&left, &right);
    }
    let (left, right) = (flat(left, scope)?, flat(right, scope)?);
    let copied = if matches!(left, Value::Text(Cow::Owned(_))) { 0 } else { left.weight() };
    scope.spend(copied + right.weight())?;
    number::concatenated(left, &right)
}

fn truth_value<'a>(truth: Option<bool>) -> Value<'a> {
    truth.map_or(Value::Null, Value::Bool)
}

impl Expression {
    /// The value for a record.
    pub(crate) fn value<'a>(&'a self, scope: Scope<'a>) -> Result<Value<'a>, Trouble> {
        scope.spend(NODE)?;
        match self {
            Self::Literal(value) => Ok(borrowed(value)),
            Self::Column(column) => {
                scope.spend(scope.row.cost(*column))?;
                let value = scope.row.column(*column)?;
                scope.spend(value.weight())?;
                Ok(value)
            }
            Self::Aggregate(at) => Ok(scope.aggregates.get(*at).map_or(Value::Null, borrowed)),
            Self::Calculate(first, rest) => {
                let mut sum = first.value(scope)?;
                for (operator, operand) in rest {
                    sum = calculated(*operator, sum, operand.value(scope)?, scope)?;
                }
                Ok(sum)
            }
            Self::Negate(operand) => {
                let value = operand.value(scope)?;
                scope.spend(value.weight())?;
                number::negated(&value)
            }
            Self::And(operands) => all(operands, scope),
            Self::Or(operands) => any(operands, scope),
            Self::Case(case) => case.value(scope),
            Self::Cast(operand, kind) => {
                let value = flat(operand.value(scope)?, scope)?;
                scope.spend(value.weight())?;
                kind.cast(value)
            }
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
        scope.spend(NODE)?;
        match self {
            Self::Compare(comparison, operands) => {
                let (left, right) = (operands[0].value(scope)?, operands[1].value(scope)?);
                let order = compared(&left, &right, scope)?;
                Ok(order.map(|order| comparison.holds(order)))
            }
            Self::Not(operand) => Ok(operand.truth(scope)?.map(|is| !is)),
            Self::Between(operands) => {
                let value = operands[0].value(scope)?;
                let low = compared(&value, &operands[1].value(scope)?, scope)?.map(Ordering::is_ge);
                let high =
                    compared(&value, &operands[2].value(scope)?, scope)?.map(Ordering::is_le);
                Ok(match (low, high) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                })
            }
            Self::In(operand, list) => list.has(&operand.value(scope)?, scope),
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
            | Self::Call(..) => truth_of(&self.value(scope)?, scope),
        }
    }
}

/// A value that borrows from another one.
fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    if let Value::Text(text) = value { Value::text(text) } else { value.clone() }
}

fn truth_of(value: &Value<'_>, scope: Scope<'_>) -> Result<Option<bool>, Trouble> {
    scope.spend(value.weight())?;
    value.truth()
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
            _ => match (result.truth()?, truth_of(&value, scope)?) {
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
            _ => match (result.truth()?, truth_of(&value, scope)?) {
                (Some(true), _) | (_, Some(true)) => return Ok(Value::Bool(true)),
                (Some(false), Some(false)) => Value::Bool(false),
                _ => Value::Null,
            },
        };
    }
    Ok(result)
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
        let order = compared(&values[0], &values[1], scope)?;
        let is_equal = order.is_some_and(Ordering::is_eq);
        return Ok(if is_equal { Value::Null } else { values.swap_remove(0) });
    }
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let values: Result<Vec<Value<'a>>, Trouble> =
        values.into_iter().map(|value| flat(value, scope)).collect();
    let values = values?;
    let weight: u64 = values.iter().map(Value::weight).sum();
    scope.spend(function.cost().saturating_mul(weight))?;
    function.of_values(values, scope.fuel)
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
                    compared(operand, &condition.value(scope)?, scope)? == Some(Ordering::Equal)
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
        let text = flat(self.text.value(scope)?, scope)?;
        if text.is_null() {
            return Ok(None);
        }
        let pattern = match &self.prepared {
            Some(pattern) => Cow::Borrowed(pattern),
            None => {
                let pattern = flat(self.pattern.value(scope)?, scope)?;
                if pattern.is_null() {
                    return Ok(None);
                }
                scope.spend(4 * pattern.weight())?;
                Cow::Owned(Pattern::new(&pattern.written(), self.escape)?)
            }
        };
        pattern.fits(&text.written(), scope.fuel).map(Some)
    }
}

/// The list of `IN`.
#[derive(Debug, Clone)]
pub(crate) struct List {
    items: Vec<Expression>,
    sorted: Option<Sorted>,
}

/// A list of literals of one type, in order.
#[derive(Debug, Clone)]
enum Sorted {
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

/// The whole number that a literal is, or that one with a sign is.
fn int(item: &Expression) -> Option<i64> {
    if let Expression::Literal(Value::Int(number)) = item {
        return Some(*number);
    }
    let Expression::Negate(inner) = item else { return None };
    let Expression::Literal(Value::Int(number)) = inner.as_ref() else { return None };
    number.checked_neg()
}

fn text(item: &Expression) -> Option<String> {
    let Expression::Literal(Value::Text(text)) = item else { return None };
    Some(text.clone().into_owned())
}

impl List {
    pub(crate) fn new(items: Vec<Expression>) -> Self {
        let ints: Option<Vec<i64>> = items.iter().map(int).collect();
        let texts: Option<Vec<String>> = items.iter().map(text).collect();
        let sorted = match (ints, texts) {
            (Some(mut ints), _) => {
                ints.sort_unstable();
                Some(Sorted::Ints(ints))
            }
            (None, Some(mut texts)) => {
                texts.sort_unstable();
                Some(Sorted::Texts(texts))
            }
            (None, None) => None,
        };
        Self { items, sorted }
    }

    /// Whether one is equal to the value; unknown if none is and one is a null.
    pub(crate) fn has(&self, value: &Value<'_>, scope: Scope<'_>) -> Result<Option<bool>, Trouble> {
        if value.is_null() {
            return Ok(None);
        }
        if let Some(is) = self.search(value, scope)? {
            return Ok(Some(is));
        }
        let mut is_unknown = false;
        for item in &self.items {
            match compared(value, &item.value(scope)?, scope)? {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => is_unknown = true,
            }
        }
        Ok(if is_unknown { None } else { Some(false) })
    }

    /// The same by the order of the list. `None` if the value has no place in it, as a fraction
    /// between whole numbers.
    fn search(&self, value: &Value<'_>, scope: Scope<'_>) -> Result<Option<bool>, Trouble> {
        let Some(sorted) = &self.sorted else { return Ok(None) };
        // About the binary logarithm of the longest list.
        scope.spend(16 * NODE + value.weight())?;
        Ok(match (sorted, value) {
            (Sorted::Ints(ints), Value::Int(number)) => Some(ints.binary_search(number).is_ok()),
            (Sorted::Ints(ints), Value::Text(text)) => match number_of_text(text)? {
                Number::Int(number) => Some(ints.binary_search(&number).is_ok()),
                Number::Decimal(_) | Number::Float(_) => None,
            },
            (Sorted::Texts(texts), Value::Text(text)) => {
                Some(texts.binary_search_by(|known| known.as_str().cmp(text)).is_ok())
            }
            (Sorted::Ints(_) | Sorted::Texts(_), _) => None,
        })
    }
}
