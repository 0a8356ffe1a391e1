//! Tagged fields: fields that few rows have, and fields that later releases add. Layout:
//! `api-spec/rows.md`. Decision: ADR 0027.
//!
//! A field is a tag, a length and as many bytes. The tag is twice the number of the field, plus one
//! if the field is required. A reader refuses a row with a required field that it does not know. It
//! keeps an optional field that it does not know, and writes it again with the row.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::DeserializeOwned;
use serde::de::Error as _;
use thiserror::Error as ThisError;

/// The tag of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::index) struct Tag(u32);

impl Tag {
    /// The tag of a field without which a reader would misunderstand the row.
    pub(in crate::index) const fn required(number: u32) -> Self {
        Self(number << 1 | 1)
    }

    /// The tag of a field that a reader may ignore.
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
    /// Adds the fields that have values.
    fn write(&self, out: &mut Writer);

    /// Reads a field. Returns whether it knows the tag.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError>;

    /// The fields of later releases.
    fn unknown(&self) -> &UnknownFields;

    /// The fields of later releases, mutable.
    fn unknown_mut(&mut self) -> &mut UnknownFields;
}

/// Fields of later releases, by tag. Their bytes are kept and written again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<(Tag, Bytes)>);

impl UnknownFields {
    /// Optional fields with these numbers, in this order.
    #[cfg(test)]
    pub(in crate::index) fn of(fields: impl IntoIterator<Item = (u32, Bytes)>) -> Self {
        Self(fields.into_iter().map(|(number, bytes)| (Tag::optional(number), bytes)).collect())
    }

    /// The bytes of all fields.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why the fields of a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub(in crate::index) enum TailError {
    /// No release writes such bytes.
    #[error("malformed fields")]
    Malformed,
    /// A required field that this release does not know.
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
    /// Its tag.
    pub(in crate::index) tag: Tag,
    bytes: &'a [u8],
}

impl Field<'_> {
    /// Decodes its value.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    pub(in crate::index) fn value<T: DeserializeOwned>(&self) -> Result<T, TailError> {
        match postcard::take_from_bytes(self.bytes)? {
            (value, []) => Ok(value),
            (_, [_, ..]) => Err(TailError::Malformed),
        }
    }

    /// Decodes its value, for an optional member.
    ///
    /// # Errors
    /// [`TailError::Malformed`].
    pub(in crate::index) fn some<T: DeserializeOwned>(&self) -> Result<Option<T>, TailError> {
        self.value().map(Some)
    }

    /// Checks a flag: a field without a value, whose presence is its meaning.
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
    /// Adds a field, if it has a value.
    pub(in crate::index) fn some<T: Serialize>(&mut self, tag: Tag, value: Option<&T>) {
        let bytes = value.map(|value| postcard::to_stdvec(value).expect("plain structs encode"));
        self.0.extend(bytes.map(|bytes| (tag, bytes.into())));
    }

    /// Adds a list, if it is not empty.
    pub(in crate::index) fn list<T: Serialize>(&mut self, tag: Tag, values: &Vec<T>) {
        self.some(tag, (!values.is_empty()).then_some(values));
    }

    /// Adds a flag, if it is set.
    pub(in crate::index) fn flag(&mut self, tag: Tag, is_there: bool) {
        self.0.extend(is_there.then_some((tag, Bytes::new())));
    }
}

/// Encodes all fields, in the order of their numbers.
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

/// Decodes fields; `None` if there are none.
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
    // Fields that are all empty are the same as no fields.
    Ok((*fields != T::default()).then_some(fields))
}

/// Describes why a row could not be decoded that is a `Head` and then fields.
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

/// Serializes fields as the last member of a struct: a byte string, empty if there are none.
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
