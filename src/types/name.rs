//! Names of accounts, containers and blobs. Constructors check that some protocol allows them; a
//! dialect checks its own, narrower rules (`protocol/`).

use std::fmt;
use std::net::Ipv4Addr;

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

/// A container name, as wide as the rules of all protocols together: 3 to 63 lower-case letters,
/// digits, hyphens and dots, a letter or digit at each end, no two dots in a row, not an IPv4
/// address; or `$root`, `$web`, `$logs`. A dialect checks its own, narrower rule where a container
/// is made. Sources: "Naming and referencing containers, blobs, and metadata", "General purpose
/// bucket naming rules".
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
        let inside =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
        let ends = [text.bytes().next(), text.bytes().last()];
        let at_an_end = |b: u8| !matches!(b, b'-' | b'.');
        let legal = text.bytes().all(inside) && ends.into_iter().flatten().all(at_an_end);
        if !legal || text.contains("..") || text.parse::<Ipv4Addr>().is_ok() {
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

/// Characters of a blob name, in UTF-16 code units, as Azure counts them. A key of S3 has at most
/// 1,024 bytes of UTF-8, which are never more units.
const BLOB_NAME_UNITS_MAX: usize = 1024;

/// A blob name, as wide as the rules of all protocols together: 1 to 1,024 UTF-16 code units, any
/// but NUL. Never normalised: `a//b` and `a/../b` are names of their own. A dialect checks its own,
/// narrower rule where a blob is made. Sources: "Naming and referencing containers, blobs, and
/// metadata", "Naming Amazon S3 objects".
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
        if text.is_empty() || text.encode_utf16().count() > BLOB_NAME_UNITS_MAX {
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
