//! Names of accounts, containers and blobs. Constructors check them.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a name is refused. Each dialect maps it to a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Too short or too long.
    #[error("the name's length is out of range")]
    Length,
    /// It has characters that are not allowed, or not at that place.
    #[error("the name has characters that are not allowed")]
    Invalid,
}

/// An account name: 3 to 24 lower-case letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct AccountName(Box<str>);

impl AccountName {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), NameError> {
        if !(3..=24).contains(&text.len()) {
            return Err(NameError::Length);
        }
        if text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            Ok(())
        } else {
            Err(NameError::Invalid)
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A container name: 3 to 63 lower-case letters, digits and single hyphens, or `$root`, `$web`,
/// `$logs`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct ContainerName(Box<str>);

impl ContainerName {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), NameError> {
        if matches!(text, "$root" | "$web" | "$logs") {
            return Ok(());
        }
        let legal = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !legal || text.starts_with('-') || text.ends_with('-') || text.contains("--") {
            return Err(NameError::Invalid);
        }
        if (3..=63).contains(&text.len()) { Ok(()) } else { Err(NameError::Length) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, without a copy.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0.into_string()
    }
}

/// The most parts of a blob name between slashes.
const SEGMENTS_MAX: usize = 254;

/// A blob name: 1 to 1,024 UTF-16 code units (as Azure counts), any except NUL, in at most 254
/// parts between slashes. It is never normalised. Source: "Naming and referencing containers,
/// blobs, and metadata".
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct BlobName(Box<str>);

impl BlobName {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), NameError> {
        let segments = text.split('/').count();
        if text.is_empty() || text.encode_utf16().count() > 1024 || segments > SEGMENTS_MAX {
            return Err(NameError::Length);
        }
        if text.contains('\0') { Err(NameError::Invalid) } else { Ok(()) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        impl TryFrom<Box<str>> for $name {
            type Error = NameError;

            fn try_from(text: Box<str>) -> Result<Self, NameError> {
                Self::check(&text).map(|()| Self(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
texts!(AccountName, ContainerName, BlobName);

#[cfg(test)]
mod tests;
