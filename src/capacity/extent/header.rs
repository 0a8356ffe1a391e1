//! The first page of an extent file: a header that never changes, and two slots with the extent's
//! epoch and state. Layout in `api-spec/extent.md`.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::capacity::ExtentKind;
use crate::capacity::units::{
    FileOffset, PAGE, get_crc, get_u16, get_u32, get_u64, index, offset_up, size,
};
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Bytes of the file before logical offset 0.
pub(crate) const DATA_AT: u64 = PAGE;

/// Bytes of one entry of the map of a compacted extent.
pub(crate) const MAP_ENTRY: u64 = 24;

const MAGIC: u32 = u32::from_le_bytes(*b"BYEX");
const SLOT_MAGIC: u32 = u32::from_le_bytes(*b"BYSL");
const VERSION: u16 = 1;
const HEADER: usize = 64;
const SLOT: usize = 64;
const SLOT_AT: [u64; 2] = [1024, 2048];

/// The part of an extent file that never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The extent.
    pub(crate) extent: ExtentId,
    /// Its kind.
    pub(crate) kind: ExtentKind,
    /// The epoch it was created at.
    pub(crate) created: Epoch,
    /// The store it belongs to.
    pub(crate) store: u128,
}

/// The part of the first page that changes. Written alternately to two slots, so that after a torn
/// write the older slot is intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Grows by one with each write.
    pub(crate) sequence: u64,
    /// The extent's epoch.
    pub(crate) epoch: Epoch,
    /// Whether it is sealed.
    pub(crate) sealed: bool,
    /// Whether bytes of an unsealed copy are known to be missing: it is being copied from another
    /// node, or the journal or later frames prove more than its sound prefix. Its end then says
    /// nothing about where the extent ends (ADR 0050).
    pub(crate) incomplete: bool,
    /// If sealed, the logical length. If open, a length that is known to be durable and intact;
    /// recovery searches for later frames from there.
    pub(crate) len: ExtentOffset,
    /// If sealed, the number of entries of the padding list, which follows the last page of frames.
    pub(crate) padding: u32,
    /// CRC-32C of that list.
    pub(crate) padding_crc: Crc32c,
    /// Entries of the map of a compacted extent; 0 if the extent was never compacted.
    pub(crate) map: u32,
    /// CRC-32C of the map.
    pub(crate) map_crc: Crc32c,
    /// Position of the map in the file.
    pub(crate) map_at: FileOffset,
}

/// An extent to be created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewExtent {
    /// Its id, which the coordinator issued.
    pub(crate) extent: ExtentId,
    /// Its kind.
    pub(crate) kind: ExtentKind,
    /// The epoch of its writer.
    pub(crate) epoch: Epoch,
    /// Whether it is a copy to which bytes of another copy will be added.
    pub(crate) incomplete: bool,
}

impl NewExtent {
    /// The first page of its file in a store.
    pub(crate) fn page(&self, store: u128) -> Bytes {
        let Self { extent, kind, epoch, incomplete } = *self;
        let header = Header { extent, kind, created: epoch, store };
        header.page_with(&[Slot { incomplete, ..Slot::new(1, epoch) }])
    }
}

impl Header {
    /// The whole first page of a new extent.
    pub(crate) fn page(&self) -> Bytes {
        self.page_with(&[Slot::new(1, self.created)])
    }

    /// A whole first page with these slots.
    pub(crate) fn page_with(&self, slots: &[Slot]) -> Bytes {
        let mut page = BytesMut::with_capacity(index(PAGE));
        page.extend_from_slice(&self.encode());
        for at in SLOT_AT {
            page.resize(index(at), 0);
            let here = slots.iter().rfind(|slot| slot.offset().get() == at);
            page.extend_from_slice(&here.map(Slot::encode).unwrap_or_default());
        }
        page.resize(index(PAGE), 0);
        page.freeze()
    }

    /// The header alone, without the slots.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEADER);
        bytes.put_u32_le(MAGIC);
        bytes.put_u16_le(VERSION);
        bytes.put_u8(kind_code(self.kind));
        bytes.put_u8(0);
        bytes.put_u64_le(self.extent.get());
        bytes.put_u64_le(self.created.get());
        bytes.put_u128_le(self.store);
        bytes.put_bytes(0, HEADER - 4 - bytes.len());
        let crc = Crc32c::of(&bytes);
        bytes.put_u32_le(crc.get());
        bytes.freeze()
    }

    /// Parses the header from an extent file's first page; `None` if it is damaged or has another
    /// version.
    pub(crate) fn parse(page: &[u8]) -> Option<Self> {
        let crc_ok = Crc32c::of(page.get(..HEADER - 4)?) == get_crc(page, HEADER - 4)?;
        if !crc_ok || get_u32(page, 0)? != MAGIC || get_u16(page, 4)? != VERSION {
            return None;
        }
        Some(Self {
            extent: ExtentId::new(get_u64(page, 8)?),
            kind: kind_of(*page.get(6)?)?,
            created: Epoch::new(get_u64(page, 16)?),
            store: u128::from_le_bytes(page.get(24..40)?.try_into().ok()?),
        })
    }
}

impl Slot {
    /// The slot of an empty open extent.
    pub(crate) fn new(sequence: u64, epoch: Epoch) -> Self {
        Self {
            sequence,
            epoch,
            sealed: false,
            incomplete: false,
            len: ExtentOffset::START,
            padding: 0,
            padding_crc: Crc32c::EMPTY,
            map: 0,
            map_crc: Crc32c::EMPTY,
            map_at: FileOffset::START,
        }
    }

    /// Where in the file this slot goes.
    pub(crate) fn offset(&self) -> FileOffset {
        let [even, odd] = SLOT_AT;
        FileOffset::new(if self.sequence.is_multiple_of(2) { even } else { odd })
    }

    /// The slot's bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(SLOT);
        bytes.put_u32_le(SLOT_MAGIC);
        bytes.put_u8(u8::from(self.sealed));
        bytes.put_u8(u8::from(self.incomplete));
        bytes.put_bytes(0, 2);
        bytes.put_u64_le(self.sequence);
        bytes.put_u64_le(self.epoch.get());
        bytes.put_u64_le(self.len.get());
        bytes.put_u32_le(self.padding);
        bytes.put_u32_le(self.padding_crc.get());
        bytes.put_u32_le(self.map);
        bytes.put_u32_le(self.map_crc.get());
        bytes.put_u64_le(self.map_at.get());
        bytes.put_bytes(0, SLOT - 4 - bytes.len());
        let crc = Crc32c::of(&bytes);
        bytes.put_u32_le(crc.get());
        bytes.freeze()
    }

    /// The valid slot with the higher sequence number of an extent file's first page.
    pub(crate) fn parse(page: &[u8]) -> Option<Self> {
        let slots = SLOT_AT.iter().filter_map(|&at| {
            let bytes = page.get(index(at)..index(at) + SLOT)?;
            let slot = Self::decode(bytes)?;
            (slot.offset().get() == at).then_some(slot)
        });
        slots.max_by_key(|slot| slot.sequence)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let crc_ok = Crc32c::of(bytes.get(..SLOT - 4)?) == get_crc(bytes, SLOT - 4)?;
        if !crc_ok || get_u32(bytes, 0)? != SLOT_MAGIC {
            return None;
        }
        Some(Self {
            sequence: get_u64(bytes, 8)?,
            epoch: Epoch::new(get_u64(bytes, 16)?),
            sealed: flag(*bytes.get(4)?)?,
            incomplete: flag(*bytes.get(5)?)?,
            len: ExtentOffset::new(get_u64(bytes, 24)?),
            padding: get_u32(bytes, 32)?,
            padding_crc: get_crc(bytes, 36)?,
            map: get_u32(bytes, 40)?,
            map_crc: get_crc(bytes, 44)?,
            map_at: FileOffset::new(get_u64(bytes, 48)?),
        })
    }
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The position of a logical offset in the file of an extent that was never compacted.
pub(crate) fn file_offset(offset: ExtentOffset) -> FileOffset {
    FileOffset::new(DATA_AT + offset.get())
}

/// Position of the padding list in the file of a sealed extent of this length.
pub(crate) fn padding_at(len: ExtentOffset) -> FileOffset {
    file_offset(offset_up(len))
}

/// Bytes of a padding list with this number of ranges.
pub(crate) fn padding_len(ranges: u32) -> u64 {
    16 * u64::from(ranges)
}

/// Length of a sealed extent's file, bytes.
pub(crate) fn sealed_file_len(slot: &Slot) -> u64 {
    if slot.map > 0 {
        return (slot.map_at + MAP_ENTRY * u64::from(slot.map)).get();
    }
    (padding_at(slot.len) + padding_len(slot.padding)).get()
}

/// Encodes the padding list: start and end of each range.
pub(crate) fn encode_padding(ranges: &[Range<ExtentOffset>]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(16 * ranges.len());
    for range in ranges {
        bytes.put_u64_le(range.start.get());
        bytes.put_u64_le(range.end.get());
    }
    bytes.freeze()
}

/// Parses a padding list; `None` if its length or checksum differs from those in the slot.
pub(crate) fn parse_padding(bytes: &[u8], slot: &Slot) -> Option<Vec<Range<ExtentOffset>>> {
    if size(bytes.len()) != padding_len(slot.padding) || Crc32c::of(bytes) != slot.padding_crc {
        return None;
    }
    let ranges = bytes.chunks_exact(16).map(|pair| {
        let (start, end) = (get_u64(pair, 0)?, get_u64(pair, 8)?);
        Some(ExtentOffset::new(start)..ExtentOffset::new(end))
    });
    ranges.collect()
}

/// The kind's number on disk.
pub(crate) fn kind_code(kind: ExtentKind) -> u8 {
    match kind {
        ExtentKind::Data => 1,
        ExtentKind::Log => 2,
        ExtentKind::Run => 3,
    }
}

/// The kind of a number on disk.
pub(crate) fn kind_of(code: u8) -> Option<ExtentKind> {
    match code {
        1 => Some(ExtentKind::Data),
        2 => Some(ExtentKind::Log),
        3 => Some(ExtentKind::Run),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
