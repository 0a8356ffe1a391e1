//! User metadata.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most bytes of names and values together; Azure's limit.
const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Name/value pairs of a blob or container, in the order and case the client sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, String)>")]
pub struct Metadata(Vec<(String, String)>);

/// Why metadata is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// A header `x-ms-meta-` without a name.
    #[error("a metadata name is empty")]
    EmptyKey,
    /// Not a C# identifier, or given twice.
    #[error("a metadata name is not an identifier, or is given twice")]
    Invalid,
    /// More than 8 KiB of names and values.
    #[error("the metadata is larger than 8 KiB")]
    TooLarge,
}

impl Metadata {
    /// Checks names and total size.
    ///
    /// # Errors
    /// [`MetadataError`], in Azure's order of checks.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, MetadataError> {
        Self::check(&pairs).map(|_| Self(pairs))
    }

    /// Checks pairs as [`Self::new`] does. Returns the bytes of all of them.
    ///
    /// # Errors
    /// [`MetadataError`], in Azure's order of checks.
    pub fn check<T: AsRef<str>>(pairs: &[(T, T)]) -> Result<usize, MetadataError> {
        let mut bytes = 0usize;
        let is_unique = has_unique_names(pairs);
        for (i, (name, value)) in pairs.iter().enumerate() {
            let (name, value) = (name.as_ref(), value.as_ref());
            if name.is_empty() {
                return Err(MetadataError::EmptyKey);
            }
            let is_earlier = |(other, _): &(T, T)| other.as_ref().eq_ignore_ascii_case(name);
            let repeated = !is_unique && pairs.iter().take(i).any(is_earlier);
            if repeated || !is_identifier(name) {
                return Err(MetadataError::Invalid);
            }
            bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
        }
        if bytes > METADATA_BYTES_MAX { Err(MetadataError::TooLarge) } else { Ok(bytes) }
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<(String, String)>> for Metadata {
    type Error = MetadataError;

    fn try_from(pairs: Vec<(String, String)>) -> Result<Self, MetadataError> {
        Self::new(pairs)
    }
}

/// Whether no two names are the same in any case. Rows are decoded often, so that this must not
/// compare each name with each other one.
fn has_unique_names<T: AsRef<str>>(pairs: &[(T, T)]) -> bool {
    fn lower(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().map(|byte| byte.to_ascii_lowercase())
    }
    if pairs.len() < 2 {
        return true;
    }
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable_by(|a, b| lower(a).cmp(lower(b)));
    names.windows(2).all(|pair| match pair {
        [a, b] => !a.eq_ignore_ascii_case(b),
        _ => true,
    })
}

/// Whether it is a C# identifier in ASCII. Names of HTTP headers have no other characters.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
