//! Tagged fields: what few rows have, and what later releases add. Bytes: `api-spec/rows.md`,
//! decision: ADR 0027.
//!
//! A field is a tag, a length and so many bytes. The tag is twice the number of the field, and one
//! more when a reader must know the field: such a reader refuses the row. A field that a reader
//! need not know is kept, and written again with the row.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::DeserializeOwned;
use serde::de::Error as _;
use thiserror::Error as ThisError;

/// Which field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::index) struct Tag(u32);

impl Tag {
    /// A field without which the row is misunderstood.
    pub(in crate::index) const fn required(number: u32) -> Self {
        Self(number << 1 | 1)
    }

    /// A field that a reader may leave alone.
    pub(in crate::index) const fn optional(number: u32) -> Self {
        Self(number << 1)
    }

    const fn number(self) -> u32 {
        self.0 >> 1
    }

    const fn is_required(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The tagged fields of one kind of row.
pub(in crate::index) trait Tagged: Debug + Default + PartialEq {
    /// Adds the fields that are there.
    fn write(&self, out: &mut Writer);

    /// Takes a field; answers whether it knows the tag.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError>;

    /// The fields of later releases.
    fn unknown(&self) -> &UnknownFields;

    /// Where fields of later releases are kept.
    fn unknown_mut(&mut self) -> &mut UnknownFields;
}

/// Fields of later releases, by tag: not understood, and written again as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<(Tag, Bytes)>);

impl UnknownFields {
    /// Fields with these numbers, in their order; none of them is one that a reader must know.
    #[cfg(test)]
    pub(in crate::index) fn of(fields: impl IntoIterator<Item = (u32, Bytes)>) -> Self {
        Self(fields.into_iter().map(|(number, bytes)| (Tag::optional(number), bytes)).collect())
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why the fields of a row are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub(in crate::index) enum TailError {
    /// Not what any release writes.
    #[error("malformed fields")]
    Malformed,
    /// A field that a reader must know.
    #[error("field {0} is of a newer release: run that release")]
    Newer(u32),
}

impl From<postcard::Error> for TailError {
    fn from(_: postcard::Error) -> Self {
        Self::Malformed
    }
}

/// A field of a row.
#[derive(Clone, Copy, Debug)]
pub(in crate::index) struct Field<'a> {
    /// Which.
    pub(in crate::index) tag: Tag,
    bytes: &'a [u8],
}

impl Field<'_> {
    /// Its value.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    pub(in crate::index) fn value<T: DeserializeOwned>(&self) -> Result<T, TailError> {
        match postcard::take_from_bytes(self.bytes)? {
            (value, []) => Ok(value),
            (_, [_, ..]) => Err(TailError::Malformed),
        }
    }

    /// Its value, of a field that is there or not.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    pub(in crate::index) fn some<T: DeserializeOwned>(&self) -> Result<Option<T>, TailError> {
        self.value().map(Some)
    }

    /// A field that says something by being there.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    pub(in crate::index) const fn flag(&self) -> Result<bool, TailError> {
        if self.bytes.is_empty() { Ok(true) } else { Err(TailError::Malformed) }
    }
}

/// Collects the fields of a row.
#[derive(Debug, Default)]
pub(in crate::index) struct Writer(Vec<(Tag, Bytes)>);

impl Writer {
    /// A field that may be there.
    pub(in crate::index) fn some<T: Serialize>(&mut self, tag: Tag, value: Option<&T>) {
        let bytes = value.map(|value| postcard::to_stdvec(value).expect("plain structs encode"));
        self.0.extend(bytes.map(|bytes| (tag, bytes.into())));
    }

    /// A list; an empty one is no field.
    pub(in crate::index) fn list<T: Serialize>(&mut self, tag: Tag, values: &Vec<T>) {
        self.some(tag, (!values.is_empty()).then_some(values));
    }

    /// A field that says something by being there.
    pub(in crate::index) fn flag(&mut self, tag: Tag, is_there: bool) {
        self.0.extend(is_there.then_some((tag, Bytes::new())));
    }
}

/// The bytes of all fields, in the order of their numbers.
pub(in crate::index) fn encode<T: Tagged>(fields: &T) -> Vec<u8> {
    let mut writer = Writer::default();
    fields.write(&mut writer);
    let Writer(mut all) = writer;
    all.extend_from_slice(&fields.unknown().0);
    all.sort_by_key(|(tag, _)| *tag);
    let mut out = Vec::new();
    for (tag, bytes) in all {
        out = postcard::to_extend(&(tag.0, bytes), out).expect("numbers and bytes encode");
    }
    out
}

/// Reads fields; `None` when there are none.
///
/// # Errors
/// [`TailError`].
pub(in crate::index) fn decode<T: Tagged>(mut bytes: &[u8]) -> Result<Option<Box<T>>, TailError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Box::<T>::default();
    let mut last = None;
    while !bytes.is_empty() {
        let ((tag, value), rest) = postcard::take_from_bytes::<(u32, &[u8])>(bytes)?;
        let tag = Tag(tag);
        if last.is_some_and(|last| last >= tag.number()) {
            return Err(TailError::Malformed);
        }
        last = Some(tag.number());
        if !fields.read(&Field { tag, bytes: value })? {
            if tag.is_required() {
                return Err(TailError::Newer(tag.number()));
            }
            fields.unknown_mut().0.push((tag, Bytes::copy_from_slice(value)));
        }
        bytes = rest;
    }
    // A field that says nothing is as good as none.
    Ok((*fields != T::default()).then_some(fields))
}

/// What is wrong with a row: a `Head`, then fields, which could not be read.
pub(in crate::index) fn fault<Head: DeserializeOwned, T: Tagged>(bytes: &[u8]) -> String {
    let fault = match postcard::take_from_bytes::<Head>(bytes) {
        Ok((_head, tail)) => match postcard::take_from_bytes::<&[u8]>(tail) {
            Ok((fields, _rest)) => decode::<T>(fields).err(),
            Err(_) => None,
        },
        Err(_) => None,
    };
    fault.map_or_else(|| "bad record".to_owned(), |error| error.to_string())
}

/// Fields as the tail of a struct: a byte string, empty where there are none.
pub(in crate::index) mod tail {
    use super::*;

    pub(in crate::index) fn serialize<T: Tagged, S: Serializer>(
        fields: &Option<Box<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match fields {
            None => serializer.serialize_bytes(&[]),
            Some(fields) => serializer.serialize_bytes(&encode(&**fields)),
        }
    }

    pub(in crate::index) fn deserialize<'de, T: Tagged, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Box<T>>, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        decode(bytes).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
