//! The list of `IN`.

use std::cmp::Ordering;

use crate::query::eval::Expression;
use crate::query::eval::Scope;
use crate::query::eval::compared;
use crate::query::eval::fuel::NODE;
use crate::query::trouble::Trouble;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::number_of_text;

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
