//! User metadata.

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// The most bytes of names and values together; Azure's limit, the largest of all protocols.
const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Name/value pairs of a blob or container, in the order the client sent. They hold the same as
/// headers of HTTP: a name is a token, a value is bytes. Names keep their case, and are compared
/// without it. A dialect checks its own, narrower rule where metadata is set. Source: RFC 9110, 5.1
/// and 5.5.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata(Vec<(String, Bytes)>);

/// Why metadata is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// A pair without a name.
    #[error("a metadata name is empty")]
    EmptyKey,
    /// A name that is not a header name or is given twice, or a value with a control character.
    #[error("a metadata name or value is not that of a header, or a name is given twice")]
    Invalid,
    /// More than 8 KiB of names and values.
    #[error("the metadata is larger than 8 KiB")]
    TooLarge,
}

impl Metadata {
    /// Checks names, values and the total size.
    ///
    /// # Errors
    /// [`MetadataError`]: `EmptyKey` or `Invalid` of the first pair that is refused, then
    /// `TooLarge`.
    pub fn new(
        pairs: impl IntoIterator<Item = (String, impl Into<Bytes>)>,
    ) -> Result<Self, MetadataError> {
        let mut checked: Vec<(String, Bytes)> = Vec::new();
        let mut bytes = 0usize;
        for (name, value) in pairs {
            let value = value.into();
            if name.is_empty() {
                return Err(MetadataError::EmptyKey);
            }
            let repeated = checked.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name));
            if repeated || !name.bytes().all(is_token) || !value.iter().all(|b| fits_a_header(*b)) {
                return Err(MetadataError::Invalid);
            }
            bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
            checked.push((name, value));
        }
        if bytes > METADATA_BYTES_MAX { Err(MetadataError::TooLarge) } else { Ok(Self(checked)) }
    }

    /// Decodes the metadata of a request and checks it as [`Self::new`] does. Rows are decoded
    /// without a check: those of earlier releases may have values that were allowed then.
    ///
    /// # Errors
    /// Those of the decoder, and [`MetadataError`].
    pub fn deserialize_checked<'de, D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let Self(pairs) = Self::deserialize(decoder)?;
        Self::new(pairs).map_err(D::Error::custom)
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_ref()))
    }

    /// The same pairs, with names as `spelled` spells them; it must not change anything but their
    /// case. `None` leaves a name as it is.
    #[must_use]
    pub fn respelled(self, spelled: impl Fn(&str) -> Option<String>) -> Self {
        let respelled = |(name, value): (String, Bytes)| {
            let other = spelled(&name).filter(|other| other.eq_ignore_ascii_case(&name));
            (other.unwrap_or(name), value)
        };
        Self(self.0.into_iter().map(respelled).collect())
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A character of a header's name.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// A byte of a header's value.
const fn fits_a_header(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests;
