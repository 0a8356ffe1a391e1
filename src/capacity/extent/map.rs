//! Where the logical ranges of a compacted extent lie in its file. Layout in `api-spec/extent.md`.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::capacity::extent::header::{MAP_ENTRY, Slot, file_offset};
use crate::capacity::extent::ranges::{Ranges, offsets};
use crate::capacity::units::{FileOffset, get_u64, index, size};
use crate::env::{DiskError, DiskFile};
use crate::types::Crc32c;
use crate::types::ExtentOffset;

/// One logical range and where it starts in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The logical range.
    pub(crate) range: Range<ExtentOffset>,
    /// Position of its first byte in the file.
    pub(crate) at: FileOffset,
}

/// The position of a logical offset in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InFile {
    at: FileOffset,
    /// Contiguous bytes from there to the end of the entry.
    left: u64,
}

/// The map of a compacted extent: disjoint entries in logical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Map {
    entries: Vec<Entry>,
}

impl Map {
    /// A map of these entries, in order.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The encoded map.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.entries.len() * index(MAP_ENTRY));
        for entry in &self.entries {
            bytes.put_u64_le(entry.range.start.get());
            bytes.put_u64_le(entry.range.end.get());
            bytes.put_u64_le(entry.at.get());
        }
        bytes.freeze()
    }

    /// Parses the map that a slot names; `None` if it is damaged.
    pub(crate) fn parse(bytes: &[u8], slot: &Slot) -> Option<Self> {
        if size(bytes.len()) != MAP_ENTRY * u64::from(slot.map) || Crc32c::of(bytes) != slot.map_crc
        {
            return None;
        }
        let entries = bytes.chunks_exact(index(MAP_ENTRY)).map(|entry| {
            let range = offsets(&(get_u64(entry, 0)?..get_u64(entry, 8)?));
            Some(Entry { range, at: FileOffset::new(get_u64(entry, 16)?) })
        });
        entries.collect::<Option<Vec<Entry>>>().map(Self::new)
    }

    /// The position of a logical offset in the file; `None` if no entry covers it.
    fn find(&self, offset: ExtentOffset) -> Option<InFile> {
        let after = self.entries.partition_point(|entry| entry.range.start <= offset);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        entry.range.contains(&offset).then(|| InFile {
            at: entry.at + (offset - entry.range.start),
            left: entry.range.end - offset,
        })
    }

    /// The logical ranges.
    pub(crate) fn ranges(&self) -> Ranges {
        self.entries.iter().map(|entry| entry.range.clone()).collect()
    }
}

/// An extent's file and the map that belongs to it; clones share both.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The file.
    pub(crate) file: Arc<dyn DiskFile>,
    /// The map of a compacted extent. Without a map, logical offset x is at position 4096 + x.
    pub(crate) map: Option<Arc<Map>>,
}

impl Body {
    /// A file that was never compacted.
    pub(crate) fn plain(file: Arc<dyn DiskFile>) -> Self {
        Self { file, map: None }
    }

    /// A sealed extent's file with the map that its slot names. `None` if the map is damaged: no
    /// frame can be found then.
    pub(crate) async fn load(
        file: Arc<dyn DiskFile>,
        slot: &Slot,
    ) -> Result<Option<Self>, DiskError> {
        if slot.map == 0 {
            return Ok(Some(Self::plain(file)));
        }
        let bytes = file.read_at(slot.map_at.get(), index(MAP_ENTRY * u64::from(slot.map))).await?;
        Ok(Map::parse(&bytes, slot).map(|map| Self { file, map: Some(Arc::new(map)) }))
    }

    /// Up to `len` bytes at a logical offset; fewer if the file or the entry of the map ends
    /// before.
    pub(crate) async fn read(&self, offset: ExtentOffset, len: u64) -> Result<Bytes, DiskError> {
        let (at, len) = match &self.map {
            None => (file_offset(offset), len),
            Some(map) => match map.find(offset) {
                None => return Ok(Bytes::new()),
                Some(found) => (found.at, len.min(found.left)),
            },
        };
        self.file.read_at(at.get(), index(len)).await
    }

    /// Writes bytes over those at a logical offset. They are not durable before a sync of the file.
    /// What no entry of the map covers is left out: nobody reads it.
    pub(crate) async fn write(&self, offset: ExtentOffset, bytes: &Bytes) -> Result<(), DiskError> {
        let Some(map) = &self.map else {
            return self.file.write_at(file_offset(offset).get(), vec![bytes.clone()]).await;
        };
        let (mut at, mut rest) = (offset, bytes.clone());
        while let Some(InFile { at: place, left }) = map.find(at).filter(|_| !rest.is_empty()) {
            let piece = rest.split_to(index(left.min(size(rest.len()))));
            at = at + size(piece.len());
            self.file.write_at(place.get(), vec![piece]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Epoch;

    fn map() -> Map {
        let entry = |range, at| Entry { range: offsets(&range), at: FileOffset::new(at) };
        Map::new(vec![entry(10..20, 5000), entry(300..400, 5010)])
    }

    fn slot(map: &[u8]) -> Slot {
        Slot {
            map: 2,
            map_crc: Crc32c::of(map),
            map_at: FileOffset::new(9000),
            ..Slot::new(1, Epoch::new(1))
        }
    }

    #[test]
    fn map_round_trips_and_damage_is_refused() {
        let bytes = map().encode();
        assert_eq!(bytes[..10], [10, 0, 0, 0, 0, 0, 0, 0, 20, 0]);
        assert_eq!(bytes[16..24], 5000u64.to_le_bytes());
        let slot = slot(&bytes);
        assert_eq!(Map::parse(&bytes, &slot), Some(map()));
        for len in 0..bytes.len() {
            assert_eq!(Map::parse(&bytes[..len], &slot), None);
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Map::parse(&damaged, &slot), None);
        }
    }

    #[test]
    fn offsets_are_found_only_inside_ranges() {
        let map = map();
        let find = |offset| {
            let found = map.find(ExtentOffset::new(offset));
            found.map(|found| (found.at.get(), found.left))
        };
        assert_eq!(find(9), None);
        assert_eq!(find(10), Some((5000, 10)));
        assert_eq!(find(19), Some((5009, 1)));
        assert_eq!(find(20), None);
        assert_eq!(find(350), Some((5060, 50)));
        assert_eq!(find(400), None);
        let gaps = [0..10, 20..300, 400..500].map(|range| offsets(&range));
        assert_eq!(map.ranges().gaps(ExtentOffset::new(500)), gaps);
    }
}
