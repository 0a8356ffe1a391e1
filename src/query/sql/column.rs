//! References to columns.

use crate::query::sql::quote::cut;

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The field of an object. A quoted name is exact; another one is so in any case.
    Name { name: String, is_exact: bool },
    /// The item of a list, from zero.
    Index(usize),
    /// All items of a list, each a record; only in `FROM`.
    Each,
}

impl Access {
    /// The length of its name, bytes.
    pub(crate) const fn name_len(&self) -> usize {
        match self {
            Access::Name { name, .. } => name.len(),
            Access::Index(_) | Access::Each => 0,
        }
    }

    pub(crate) fn is_named(&self, other: &str) -> bool {
        match self {
            Access::Name { name, is_exact: true } => name == other,
            Access::Name { name, is_exact: false } => name.eq_ignore_ascii_case(other),
            Access::Index(_) | Access::Each => false,
        }
    }
}

/// A column that a statement names: a name, and the way to a value inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) path: Vec<Access>,
}

impl Column {
    /// The number of the column, from one, if it is referred to as `_1`.
    pub(crate) fn ordinal(&self) -> Option<usize> {
        let [Access::Name { name, is_exact: false }] = self.path.as_slice() else { return None };
        let digits = name.strip_prefix('_')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // More columns than fit into a number are more than a record has.
        is_number.then(|| digits.parse().unwrap_or(usize::MAX))
    }

    /// The name that the column has in the answer, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self.path.last()? {
            Access::Name { name, .. } => Some(name),
            Access::Index(_) | Access::Each => None,
        }
    }

    /// As the statement has it, for a fault; a long one is cut off.
    pub(crate) fn written(&self) -> String {
        let mut text = String::new();
        for access in &self.path {
            match access {
                Access::Name { name, .. } if text.is_empty() => text.push_str(name),
                Access::Name { name, .. } => text.extend([".", name]),
                Access::Index(at) => text.extend(["[", &at.to_string(), "]"]),
                Access::Each => text.push_str("[*]"),
            }
        }
        cut(&text)
    }
}
