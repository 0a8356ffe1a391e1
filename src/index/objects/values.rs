//! Row values: a version byte, then postcard. Layout: `api-spec/rows.md`.
//!
//! Accounts, containers, blobs, pending copies and staged blocks count their versions by
//! [`Upgrade`], layout segments by [`SEGMENT_VERSION`]; all others are version 1.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize as DeriveSerialize};

use crate::index::api::Error;
use crate::index::objects::keys::corrupt;
use crate::index::objects::part_fields;
use crate::index::objects::part_fields::BlockFields;
use crate::index::objects::part_fields::Numbered;
use crate::index::objects::part_fields::PartFields;
use crate::index::record::BlobRecord;
use crate::index::record::ListedFields;
use crate::index::record::ListedRecord;
use crate::index::record::Upgrade;
use crate::index::record::tagged;
use crate::index::record::upgraded;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::types::BlockId;
use crate::types::Crc64;
use crate::types::Location;
use crate::types::Timestamp;

pub(crate) use crate::index::objects::contents::{Content, Protection, StoredBytes};

/// The first byte of every value whose layout never changed. Other values of it are refused.
pub(super) const VERSION: u8 = 1;
/// The first byte of a layout segment. In version 1 no block had fields.
const SEGMENT_VERSION: u8 = 2;
/// The variant of a layout that is [`Layout::Blocks`] with fields of some of the blocks.
const LAYOUT_PARTS: u8 = 5;

/// One committed block.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct Entry {
    /// The block.
    pub(crate) id: BlockId,
    /// Bytes.
    pub(crate) len: u64,
    /// The checksum of its bytes.
    pub(crate) crc64: Crc64,
    /// Its bytes.
    pub(crate) content: Content,
    /// Fields that few blocks have. They stand behind the list.
    #[serde(skip)]
    pub(crate) fields: BlockFields,
}

impl Entry {
    /// A block without fields.
    pub(crate) const fn new(id: BlockId, len: u64, crc64: Crc64, content: Content) -> Self {
        Self { id, len, crc64, content, fields: None }
    }
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
    /// Of an append blob: full segments in rows of [`Family::Layout`], and the blocks that were
    /// appended since. The id of a block is its number, u32 big endian. A segment's row may have
    /// more blocks than the directory says: those of later appends.
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
        /// Ticks, newest first. A span of a newer layer hides those of older ones. Writes go to the
        /// first layer; the others belong to snapshots and do not change.
        layers: Vec<u64>,
    },
}

/// A stretch of a layer of a page blob; the key says where it ends.
#[derive(Clone, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct Span {
    /// Bytes.
    pub(crate) len: u64,
    /// Bytes of the content before it, which were overwritten since.
    pub(crate) skip: u64,
    /// Where its bytes are, one location at most; `None` for zeros that hide an older layer.
    pub(crate) content: Option<Content>,
}

/// A layer of a page blob that no row names any more. Its spans are removed in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct DeadLayer {
    /// When it was dropped.
    pub(crate) since: Timestamp,
}

/// The content of a blob, which follows the record in its main row.
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
    /// The checksum of its bytes.
    pub(crate) crc64: Crc64,
    /// When it was staged.
    pub(crate) time: Timestamp,
    /// Fields that few blocks have.
    #[serde(with = "tagged::tail")]
    pub(crate) fields: BlockFields,
    /// Its bytes.
    pub(crate) content: Content,
}

impl Upgrade for StagedBlock {
    const VERSION: u8 = 2;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        (version == 1).then(|| upgraded::<StagedBlock1, Self>(bytes))
    }

    fn fault(bytes: &[u8]) -> String {
        tagged::fault::<(u64, Crc64, Timestamp), PartFields>(bytes)
    }
}

/// As version 1 wrote it; it stays readable.
#[derive(Deserialize)]
struct StagedBlock1 {
    len: u64,
    crc64: Crc64,
    time: Timestamp,
    content: Content,
}

impl From<StagedBlock1> for StagedBlock {
    fn from(old: StagedBlock1) -> Self {
        let StagedBlock1 { len, crc64, time, content } = old;
        Self { len, crc64, time, fields: None, content }
    }
}

/// A summary of a blob's staged blocks, which saves a walk over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct StagedSummary {
    /// How many, at least 1.
    pub(crate) count: u32,
    /// Bytes of each id.
    pub(crate) id_len: u8,
    /// The last Put Block.
    pub(crate) last_staged: Timestamp,
}

/// The row beside the versions of a blob that names the null version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct NullVersion {
    /// When it was committed.
    pub(crate) committed: Timestamp,
}

/// The work row about the soft-deleted rows of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, Deserialize)]
pub(crate) struct DeletedWork {
    /// When the first row ends, or earlier.
    pub(crate) until: Timestamp,
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

/// Encodes an account, container, pending copy or staged block.
pub(in crate::index) fn encode_record<T: Upgrade>(record: &T) -> Bytes {
    append(vec![T::VERSION], record).into()
}

/// Room for the record of most blobs.
const RECORD_BYTES: usize = 192;

/// Encodes a blob's main row: the record first, so that HEAD and LIST stop there.
pub(in crate::index) fn encode_blob(record: &BlobRecord, content: &BlobContent) -> Bytes {
    debug_assert!(record.has_a_row(), "the key of a scope is among the tagged fields");
    let inline = match &content.layout {
        Layout::Whole(Content::Inline(bytes)) => bytes.len(),
        Layout::Whole(_)
        | Layout::Blocks(_)
        | Layout::Segments { .. }
        | Layout::Appended { .. }
        | Layout::Pages { .. } => 0,
    };
    let mut out = Vec::with_capacity(RECORD_BYTES + inline);
    out.push(BlobRecord::VERSION);
    append_content(append(out, record), content).into()
}

/// Encodes the content part of a blob's row.
pub(super) fn encode_content(content: &BlobContent) -> Bytes {
    append_content(Vec::new(), content).into()
}

/// Encodes a segment of a long layout.
pub(in crate::index) fn encode_segment(entries: &[Entry]) -> Bytes {
    let fields = part_fields::numbered(entries.iter().map(|entry| &entry.fields));
    append(vec![SEGMENT_VERSION], &(entries, fields)).into()
}

/// Encodes a blob's main row with the content part of an earlier one.
pub(super) fn encode_blob_raw(record: &BlobRecord, content: &[u8]) -> Bytes {
    debug_assert!(record.has_a_row(), "the key of a scope is among the tagged fields");
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

/// Decodes a segment of a long layout.
pub(crate) fn decode_segment(key: &[u8], value: &[u8]) -> Result<Vec<Entry>, Error> {
    let family = Family::Layout;
    let Some((&SEGMENT_VERSION, rest)) = value.split_first() else {
        return decode(family, key, value);
    };
    match postcard::take_from_bytes(rest) {
        Ok((parts, [])) => parts_of(parts).ok_or_else(|| corrupt(family, key, "bad fields")),
        Ok(_) => Err(corrupt(family, key, "bytes after the value")),
        Err(_) => Err(corrupt(family, key, "bad value")),
    }
}

/// Decodes an account, container, pending copy or staged block.
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
    if version == T::VERSION {
        return postcard::take_from_bytes(rest).map_err(|_| corrupt(family, key, &T::fault(rest)));
    }
    let read = T::earlier(version, rest)
        .ok_or_else(|| corrupt(family, key, &format!("unknown version {version}")))?;
    read.map_err(|_| corrupt(family, key, "bad record"))
}

/// Decodes the record of a blob's row for a list, without a copy of the fields that the list does
/// not show.
pub(crate) fn decode_listed(
    family: Family,
    row: &Row,
    shown: ListedFields,
) -> Result<ListedRecord, Error> {
    let Row { key, value } = row;
    if let Some((&BlobRecord::VERSION, bytes)) = value.split_first() {
        return ListedRecord::decode(bytes, shown)
            .map_err(|_| corrupt(family, key, &BlobRecord::fault(bytes)));
    }
    let (record, _content) = decode_record_head(family, key, value)?;
    Ok(ListedRecord::of(record, shown))
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
    let read = match content {
        [id_len, LAYOUT_PARTS, rest @ ..] => {
            postcard::take_from_bytes(rest).and_then(|(parts, rest)| {
                let entries = parts_of(parts).ok_or(postcard::Error::SerdeDeCustom)?;
                Ok((BlobContent { id_len: *id_len, layout: Layout::Blocks(entries) }, rest))
            })
        }
        _ => postcard::take_from_bytes(content),
    };
    match read {
        Ok((content, [])) => Ok(content),
        Ok(_) => Err(corrupt(Family::Main, key, "bytes after the content")),
        Err(_) => Err(corrupt(Family::Main, key, "bad content")),
    }
}

/// A list of blocks and the fields that stand behind it.
fn parts_of((mut entries, fields): (Vec<Entry>, Vec<Numbered>)) -> Option<Vec<Entry>> {
    part_fields::restore(fields, entries.iter_mut().map(|entry| &mut entry.fields))?;
    Some(entries)
}

fn append_content(out: Vec<u8>, content: &BlobContent) -> Vec<u8> {
    if let BlobContent { id_len, layout: Layout::Blocks(entries) } = content {
        let fields = part_fields::numbered(entries.iter().map(|entry| &entry.fields));
        if !fields.is_empty() {
            return append(out, &(*id_len, LAYOUT_PARTS, entries, fields));
        }
    }
    append(out, content)
}

fn append<T: Serialize>(out: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::to_extend(value, out).expect("plain structs and vectors always encode")
}
