//! Row values: a version byte, then postcard. Layout: `api-spec/rows.md`.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize as DeriveSerialize};

use crate::index::api::Error;
use crate::index::objects::keys::corrupt;
use crate::index::record::BlobRecord;
use crate::index::record::Upgrade;
use crate::index::rows::Family;
use crate::types::BlockId;
use crate::types::Crc64;
use crate::types::Location;
use crate::types::Timestamp;

pub(crate) use crate::index::objects::contents::{Content, Lies, Parts};

/// The first byte of every value but records; another one is refused.
pub(super) const VERSION: u8 = 1;

/// One committed block.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct Entry {
    /// The block.
    pub(crate) id: BlockId,
    /// Bytes.
    pub(crate) len: u64,
    /// Of its bytes.
    pub(crate) crc64: Crc64,
    /// Its bytes.
    pub(crate) content: Content,
}

/// Where a segment of a long layout begins in the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct SegmentStart {
    /// Offset of its first byte in the blob.
    pub(crate) start: u64,
    /// Its blocks.
    pub(crate) entries: u32,
}

/// How a blob's content is laid out.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) enum Layout {
    /// Made by Put Blob: no blocks.
    Whole(Content),
    /// A short block list.
    Blocks(Vec<Entry>),
    /// A long one, in rows of [`Family::Layout`].
    Segments {
        /// In their keys: the ticks of the commit or snapshot.
        generation: u64,
        /// One for each row, in order.
        directory: Vec<SegmentStart>,
    },
    /// Of an append blob: full segments in rows of [`Family::Layout`], and what was appended since.
    /// The id of a block is its number, u32 big endian. A segment's row may have more blocks than
    /// the directory says: those of later appends.
    Appended {
        /// In the keys: the ticks of the blob's making.
        generation: u64,
        /// One for each row, in order.
        directory: Vec<SegmentStart>,
        /// The last blocks.
        tail: Vec<Entry>,
    },
    /// Of a page blob: spans of layers, in rows of [`Family::Layout`]. Where no layer has a span
    /// there are zeros.
    Pages {
        /// Ticks, newest first: where a newer layer has a span it hides those of the older ones.
        /// Writes go to the first; the others are of snapshots and no longer change.
        layers: Vec<u64>,
    },
}

/// A stretch of a layer of a page blob; the key says where it ends.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct Span {
    /// Bytes.
    pub(crate) len: u64,
    /// Bytes of the content before it: what was written over since.
    pub(crate) skip: u64,
    /// Where its bytes are, one location at most; `None` for zeros that hide an older layer.
    pub(crate) content: Option<Content>,
}

/// A layer of a page blob that no row names any more: its spans are removed bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct DeadLayer {
    /// When it was dropped.
    pub(crate) since: Timestamp,
}

/// What follows the record in the main row of a blob.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct BlobContent {
    /// Bytes of each block id; 0 without blocks.
    pub(crate) id_len: u8,
    /// The layout.
    pub(crate) layout: Layout,
}

/// A staged block.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct StagedBlock {
    /// Bytes.
    pub(crate) len: u64,
    /// Of its bytes.
    pub(crate) crc64: Crc64,
    /// When it was staged.
    pub(crate) time: Timestamp,
    /// Its bytes.
    pub(crate) content: Content,
}

/// What is known of a blob's staged blocks without walking them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct StagedSummary {
    /// How many, at least 1.
    pub(crate) count: u32,
    /// Bytes of each id.
    pub(crate) id_len: u8,
    /// The last Put Block.
    pub(crate) last_staged: Timestamp,
}

/// A garbage row.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct GarbageValue {
    /// When it became garbage.
    pub(crate) since: Timestamp,
    /// At most [`super::garbage::LOCATIONS_MAX`].
    pub(crate) locations: Vec<Location>,
}

/// A purge row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct DeadContainer {
    /// When the container was deleted.
    pub(crate) deleted: Timestamp,
}

/// Encodes a value.
pub(in crate::index) fn encode<T: Serialize>(value: &T) -> Bytes {
    append(vec![VERSION], value).into()
}

/// Encodes an account, container or pending copy.
pub(in crate::index) fn encode_record<T: Upgrade>(record: &T) -> Bytes {
    append(vec![T::VERSION], record).into()
}

/// Encodes a blob's main row: the record first, so that HEAD and LIST stop there.
pub(in crate::index) fn encode_blob(record: &BlobRecord, content: &BlobContent) -> Bytes {
    append(append(vec![BlobRecord::VERSION], record), content).into()
}

/// Encodes a blob's main row with the content part of an earlier one.
pub(super) fn encode_blob_raw(record: &BlobRecord, content: &[u8]) -> Bytes {
    let mut out = append(vec![BlobRecord::VERSION], record);
    out.extend_from_slice(content);
    out.into()
}

/// Decodes a value.
pub(crate) fn decode<T: DeserializeOwned>(
    family: Family,
    key: &[u8],
    value: &[u8],
) -> Result<T, Error> {
    let (decoded, rest) = decode_head(family, key, value)?;
    if rest.is_empty() { Ok(decoded) } else { Err(corrupt(family, key, "bytes after the value")) }
}

/// Decodes an account, container or pending copy.
pub(crate) fn decode_record<T: Upgrade>(
    family: Family,
    key: &[u8],
    value: &[u8],
) -> Result<T, Error> {
    let (decoded, rest) = decode_record_head(family, key, value)?;
    if rest.is_empty() { Ok(decoded) } else { Err(corrupt(family, key, "bytes after the value")) }
}

/// Decodes the record a value starts with and returns the rest: of a blob's row, the encoded
/// content.
pub(crate) fn decode_record_head<'a, T: Upgrade>(
    family: Family,
    key: &[u8],
    value: &'a [u8],
) -> Result<(T, &'a [u8]), Error> {
    let (&version, rest) =
        value.split_first().ok_or_else(|| corrupt(family, key, "empty value"))?;
    let read = if version == T::VERSION {
        postcard::take_from_bytes(rest)
    } else {
        T::earlier(version, rest)
            .ok_or_else(|| corrupt(family, key, &format!("unknown version {version}")))?
    };
    read.map_err(|_| corrupt(family, key, "bad record"))
}

/// Decodes the first part of a value and returns the rest.
fn decode_head<'a, T: DeserializeOwned>(
    family: Family,
    key: &[u8],
    value: &'a [u8],
) -> Result<(T, &'a [u8]), Error> {
    match value.split_first() {
        Some((&VERSION, rest)) => {
            postcard::take_from_bytes(rest).map_err(|_| corrupt(family, key, "bad value"))
        }
        Some((version, _)) => Err(corrupt(family, key, &format!("unknown version {version}"))),
        None => Err(corrupt(family, key, "empty value")),
    }
}

/// Decodes the content part of a blob's main row.
pub(crate) fn decode_content(key: &[u8], content: &[u8]) -> Result<BlobContent, Error> {
    match postcard::take_from_bytes(content) {
        Ok((content, [])) => Ok(content),
        Ok(_) => Err(corrupt(Family::Main, key, "bytes after the content")),
        Err(_) => Err(corrupt(Family::Main, key, "bad content")),
    }
}

fn append<T: Serialize>(out: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::to_extend(value, out).expect("plain structs and vectors always encode")
}
