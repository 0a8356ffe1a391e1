//! Superblock, batch and record of the journal ring. Layout in `api-spec/journal.md`.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::capacity::units::{
    FileOffset, PAGE, get_crc, get_u16, get_u32, get_u64, index, page_up, size, zeros,
};
use crate::types::Crc32c;
use crate::types::Crc32cHasher;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Where the ring of batches starts in the file, after two superblock pages.
pub(crate) const RING_AT: FileOffset = FileOffset::new(2 * PAGE);

/// A batch's header, bytes.
pub(crate) const BATCH_HEADER: u64 = 64;

/// A record's header, bytes.
pub(crate) const RECORD_HEADER: u64 = 24;

const SUPER_MAGIC: u32 = u32::from_le_bytes(*b"BYJS");
const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"BYJB");
const VERSION: u16 = 1;
const SUPER: usize = 64;

/// The number of a batch. It grows by one from batch to batch; a restart skips one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lsn(u64);

impl Lsn {
    /// The number of the first batch of a ring.
    pub(crate) const FIRST: Self = Self(1);

    /// A number of a test or of the fuzz target.
    #[cfg(test)]
    pub(crate) const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for encoding and messages.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The number of the next batch.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The random number of a ring. Every batch has it, so that payload of users cannot imitate a
/// batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingId(u64);

impl RingId {
    /// The id with this number.
    pub(crate) const fn new(value: u64) -> Self {
        Self(value)
    }
}

/// Where replay starts. Written alternately to two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Grows by one with each write.
    pub(crate) generation: u64,
    /// The id of the ring, chosen at random when it is made.
    pub(crate) ring: RingId,
    /// Bytes of the whole file.
    pub(crate) size: u64,
    /// Number of the first batch to replay.
    pub(crate) lsn: Lsn,
    /// Position of that batch in the file, whether it is already written or not.
    pub(crate) position: FileOffset,
}

impl Superblock {
    /// Where in the file this superblock goes.
    pub(crate) fn offset(&self) -> FileOffset {
        FileOffset::new(self.generation % 2 * PAGE)
    }

    /// The superblock's page.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(index(PAGE));
        bytes.put_u32_le(SUPER_MAGIC);
        bytes.put_u16_le(VERSION);
        bytes.put_u16_le(0);
        bytes.put_u64_le(self.generation);
        bytes.put_u64_le(self.ring.0);
        bytes.put_u64_le(self.size);
        bytes.put_u64_le(self.lsn.get());
        bytes.put_u64_le(self.position.get());
        bytes.put_bytes(0, SUPER - 4 - bytes.len());
        let crc = Crc32c::of(&bytes);
        bytes.put_u32_le(crc.get());
        bytes.put_bytes(0, index(PAGE) - SUPER);
        bytes.freeze()
    }

    /// Parses one superblock; `None` when damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let crc_ok = Crc32c::of(bytes.get(..SUPER - 4)?) == get_crc(bytes, SUPER - 4)?;
        if !crc_ok || get_u32(bytes, 0)? != SUPER_MAGIC || get_u16(bytes, 4)? != VERSION {
            return None;
        }
        Some(Self {
            generation: get_u64(bytes, 8)?,
            ring: RingId(get_u64(bytes, 16)?),
            size: get_u64(bytes, 24)?,
            lsn: Lsn(get_u64(bytes, 32)?),
            position: FileOffset::new(get_u64(bytes, 40)?),
        })
    }

    /// The superblock with the higher generation of those that are valid in the first two pages.
    pub(crate) fn latest(pages: &[u8]) -> Option<Self> {
        let both = [0, PAGE].into_iter().filter_map(|at| {
            let found = Self::decode(pages.get(index(at)..)?)?;
            (found.offset().get() == at).then_some(found)
        });
        both.max_by_key(|superblock| superblock.generation)
    }
}

/// The frames of one append, as the journal holds them.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The extent.
    pub(crate) extent: ExtentId,
    /// The logical offset of the first byte.
    pub(crate) offset: ExtentOffset,
    /// The bytes.
    pub(crate) pieces: Vec<Bytes>,
    /// Their length.
    pub(crate) len: u64,
}

impl Record {
    /// Bytes that the record takes in a batch.
    pub(crate) fn encoded_len(&self) -> u64 {
        RECORD_HEADER + self.len
    }

    /// The logical range of the bytes.
    pub(crate) fn range(&self) -> Range<ExtentOffset> {
        self.offset..self.offset + self.len
    }
}

/// Bytes that a batch with a body of this length takes in the ring.
pub(crate) const fn batch_len(body: u64) -> u64 {
    page_up(BATCH_HEADER + body)
}

/// Encodes a batch as pieces to write. Together they are whole pages.
pub(crate) fn encode_batch(
    ring: RingId,
    lsn: Lsn,
    checkpoint: Lsn,
    records: &[Record],
) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(2 + records.len() * 4);
    let mut body_crc = Crc32cHasher::default();
    let mut body = 0;
    let mut heads = BytesMut::with_capacity(records.len() * index(RECORD_HEADER));
    for record in records {
        heads.put_u64_le(record.extent.get());
        heads.put_u64_le(record.offset.get());
        heads.put_u32_le(u32::try_from(record.len).expect("a journaled append is small"));
        heads.put_u32_le(0);
        let head = heads.split().freeze();
        body_crc.update(&head);
        pieces.push(head);
        for piece in &record.pieces {
            body_crc.update(piece);
            pieces.push(piece.clone());
        }
        body += record.encoded_len();
    }
    let header = BatchHeader {
        lsn,
        body,
        records: u32::try_from(records.len()).expect("a batch is small"),
        body_crc: body_crc.finish(),
        checkpoint,
    };
    pieces.insert(0, header.encode(ring));
    let padding = batch_len(body) - BATCH_HEADER - body;
    if padding > 0 {
        pieces.push(zeros(padding));
    }
    pieces
}

/// A batch's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// The batch's number; batches are numbered consecutively.
    pub(crate) lsn: Lsn,
    /// Bytes of records.
    pub(crate) body: u64,
    /// Number of records.
    pub(crate) records: u32,
    /// CRC-32C of the body.
    pub(crate) body_crc: Crc32c,
    /// Number of the first batch that a replay would have needed when this one was written.
    pub(crate) checkpoint: Lsn,
}

impl BatchHeader {
    fn encode(&self, ring: RingId) -> Bytes {
        let mut bytes = BytesMut::with_capacity(index(BATCH_HEADER));
        bytes.put_u32_le(BATCH_MAGIC);
        bytes.put_u16_le(VERSION);
        bytes.put_u16_le(0);
        bytes.put_u64_le(ring.0);
        bytes.put_u64_le(self.lsn.get());
        bytes.put_u32_le(u32::try_from(self.body).expect("a batch is small"));
        bytes.put_u32_le(self.records);
        bytes.put_u32_le(self.body_crc.get());
        bytes.put_u32_le(0);
        bytes.put_u64_le(self.checkpoint.get());
        bytes.put_bytes(0, index(BATCH_HEADER) - 4 - bytes.len());
        let crc = Crc32c::of(&bytes);
        bytes.put_u32_le(crc.get());
        bytes.freeze()
    }

    /// Parses the header of a batch of this ring; `None` if there is none, or it is damaged.
    pub(crate) fn decode(bytes: &[u8], ring: RingId) -> Option<Self> {
        let end = index(BATCH_HEADER) - 4;
        if get_u32(bytes, 0)? != BATCH_MAGIC || get_u16(bytes, 4)? != VERSION {
            return None;
        }
        if RingId(get_u64(bytes, 8)?) != ring
            || Crc32c::of(bytes.get(..end)?) != get_crc(bytes, end)?
        {
            return None;
        }
        Some(Self {
            lsn: Lsn(get_u64(bytes, 16)?),
            body: u64::from(get_u32(bytes, 24)?),
            records: get_u32(bytes, 28)?,
            body_crc: get_crc(bytes, 32)?,
            checkpoint: Lsn(get_u64(bytes, 40)?),
        })
    }
}

/// Parses a batch's body; `None` unless its checksum, its count and its lengths agree with the
/// header.
pub(crate) fn decode_body(header: &BatchHeader, body: &Bytes) -> Option<Vec<Record>> {
    if size(body.len()) != header.body || Crc32c::of(body) != header.body_crc {
        return None;
    }
    let mut records = Vec::new();
    let mut rest = body.clone();
    for _ in 0..header.records {
        let extent = ExtentId::new(get_u64(&rest, 0)?);
        let offset = ExtentOffset::new(get_u64(&rest, 8)?);
        let len = u64::from(get_u32(&rest, 16)?);
        if size(rest.len()) < RECORD_HEADER + len {
            return None;
        }
        let mut bytes = rest.split_to(index(RECORD_HEADER + len));
        let pieces = vec![bytes.split_off(index(RECORD_HEADER))];
        records.push(Record { extent, offset, pieces, len });
    }
    rest.is_empty().then_some(records)
}

#[cfg(test)]
mod tests;
