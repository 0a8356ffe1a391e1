//! A blob's record as a list reads it. Fields that the list does not show are read over in the
//! row's bytes and not copied. The content, which follows the record, is not read.

#![deny(clippy::indexing_slicing)]

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;
use serde::de::SeqAccess;
use serde::de::Visitor;
use uuid::Uuid;

use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::CopyStatus;
use crate::index::record::tagged;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// Which of the fields that a list shows on request it shows. The others are empty in its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFields {
    /// User metadata.
    pub metadata: bool,
    /// The last copy into the blob.
    pub copy: bool,
    /// The tag of the content. Other tagged fields are always there.
    pub content_tag: bool,
}

impl ListedFields {
    /// All of them.
    pub const ALL: Self = Self { metadata: true, copy: true, content_tag: true };
}

/// A record in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::index) struct ListedRecord {
    /// The record, without the fields that the list does not show.
    pub(in crate::index) record: BlobRecord,
    /// [`BlobRecord::weight`] of the whole record: a page ends at the same blob whatever it shows.
    pub(in crate::index) weight: usize,
}

impl ListedRecord {
    /// A record that was decoded whole.
    pub(in crate::index) fn of(mut record: BlobRecord, shown: ListedFields) -> Self {
        let weight = record.weight();
        if !shown.metadata {
            record.metadata = Metadata::default();
        }
        record.copy = record.copy.filter(|_| shown.copy);
        if !shown.content_tag {
            record.fields = record.fields.filter(|fields| **fields != BlobFields::usual());
        }
        Self { record, weight }
    }

    /// Decodes the record of a row of the newest version, after its version byte.
    ///
    /// # Errors
    /// Those of `postcard`: the bytes do not begin with a record.
    pub(in crate::index) fn decode(bytes: &[u8], shown: ListedFields) -> postcard::Result<Self> {
        let (head, bytes) = postcard::take_from_bytes::<Head>(bytes)?;
        let (metadata, bytes) = if shown.metadata {
            let (metadata, bytes) = postcard::take_from_bytes(bytes)?;
            (Listed::Shown(metadata), bytes)
        } else {
            let (over, bytes) = postcard::take_from_bytes::<MetadataReadOver>(bytes)?;
            (Listed::ReadOver(over.len), bytes)
        };
        let (middle, bytes) = postcard::take_from_bytes::<Middle>(bytes)?;
        let (copy, bytes) = if shown.copy {
            let (copy, bytes) = postcard::take_from_bytes(bytes)?;
            (Listed::Shown(copy), bytes)
        } else {
            let (over, bytes) = postcard::take_from_bytes::<Option<CopyReadOver<'_>>>(bytes)?;
            (Listed::ReadOver(over.map_or(0, |copy| copy.len())), bytes)
        };
        let (tail, _content) = postcard::take_from_bytes::<Tail<'_>>(bytes)?;
        let fields = if !shown.content_tag && tail.fields == BlobFields::USUAL {
            None
        } else {
            tagged::decode(tail.fields).map_err(postcard::Error::custom)?
        };
        let read_over = metadata.read_over() + copy.read_over();
        let record = BlobRecord {
            created: head.created,
            last_modified: head.last_modified,
            etag: head.etag,
            len: head.len,
            crc64: head.crc64,
            properties: head.properties,
            metadata: metadata.shown(),
            kind: middle.kind,
            tags: middle.tags,
            lease: middle.lease,
            tier: middle.tier,
            copy: copy.shown(),
            encryption: tail.encryption,
            accessed: tail.accessed,
            snapshots: tail.snapshots,
            fields,
        };
        Ok(Self { weight: record.weight() + read_over, record })
    }
}

/// A field that a list shows on request.
enum Listed<T> {
    Shown(T),
    /// The length of its texts, bytes.
    ReadOver(usize),
}

impl<T: Default> Listed<T> {
    const fn read_over(&self) -> usize {
        match self {
            Self::Shown(_) => 0,
            Self::ReadOver(len) => *len,
        }
    }

    fn shown(self) -> T {
        match self {
            Self::Shown(value) => value,
            Self::ReadOver(_) => T::default(),
        }
    }
}

/// The fields of a record before its metadata.
#[derive(Deserialize)]
struct Head {
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    len: u64,
    crc64: Crc64,
    properties: BlobProperties,
}

/// The fields between metadata and copy.
#[derive(Deserialize)]
struct Middle {
    kind: BlobKind,
    tags: Tags,
    lease: Option<Lease>,
    tier: Option<TierState>,
}

/// The fields after the copy.
#[derive(Deserialize)]
struct Tail<'a> {
    encryption: Option<Encryption>,
    accessed: Option<Timestamp>,
    snapshots: u32,
    /// The tagged fields, encoded.
    fields: &'a [u8],
}

/// A [`CopyRecord`](crate::index::record::CopyRecord) whose texts are not copied.
#[derive(Deserialize)]
struct CopyReadOver<'a> {
    _id: Uuid,
    source: &'a str,
    _status: CopyStatus,
    #[serde(borrow)]
    description: Option<&'a str>,
    _copied: u64,
    _total: u64,
    _completed: Option<Timestamp>,
}

impl CopyReadOver<'_> {
    fn len(&self) -> usize {
        self.source.len() + self.description.map_or(0, str::len)
    }
}

/// [`Metadata`] that is not copied.
struct MetadataReadOver {
    /// The length of names and values, bytes.
    len: usize,
}

impl<'de> Deserialize<'de> for MetadataReadOver {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = MetadataReadOver;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names and values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
        let mut len = 0;
        while let Some((name, value)) = pairs.next_element::<(&str, &[u8])>()? {
            len += name.len() + value.len();
        }
        Ok(MetadataReadOver { len })
    }
}
