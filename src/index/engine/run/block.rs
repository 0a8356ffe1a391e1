//! A block: about 16 KiB of rows in key order. Each key is stored without the prefix that it shares
//! with the key before.

#![deny(clippy::indexing_slicing)]

use bytes::{BufMut, Bytes, BytesMut};

use crate::index::engine::codec;
use crate::index::engine::table::Item;

/// The interval of rows at which a key is stored whole, so that a search can start there.
const RESTART_INTERVAL: usize = 16;
/// A block with more unpacked bytes is damaged: the rows of the longest block list take far less.
const UNPACKED_MAX: usize = 1 << 30;
const RAW: u8 = 0;
const LZ4: u8 = 1;

/// Collects rows for one block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    rows: BytesMut,
    restarts: Vec<u32>,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// Adds a row; keys ascend.
    ///
    /// # Panics
    /// If keys do not ascend: a run out of order would lose rows.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        assert!(self.is_empty() || self.last_key.as_slice() < key, "keys must ascend");
        let shared = if self.is_empty() || self.since_restart == RESTART_INTERVAL {
            self.restarts.push(u32::try_from(self.rows.len()).expect("a block is below 4 GiB"));
            self.since_restart = 0;
            0
        } else {
            self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        self.since_restart += 1;
        let (_, rest) = key.split_at(shared);
        codec::put_varint(&mut self.rows, codec::wide(shared));
        codec::put_varint(&mut self.rows, codec::wide(rest.len()));
        // 0 is a tombstone; otherwise the length is one less.
        codec::put_varint(&mut self.rows, value.map_or(0, |value| codec::wide(value.len()) + 1));
        self.rows.extend_from_slice(rest);
        self.rows.extend_from_slice(value.unwrap_or_default());
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(rest);
    }

    /// Unpacked bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + 4 * self.restarts.len()
    }

    /// Whether the block has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Encodes the block. The builder is empty afterwards.
    pub(crate) fn finish(&mut self) -> Bytes {
        let Self { mut rows, restarts, .. } = std::mem::take(self);
        for restart in &restarts {
            rows.put_u32_le(*restart);
        }
        rows.put_u32_le(u32::try_from(restarts.len()).expect("fewer than its bytes"));
        let packed = lz4_flex::block::compress(&rows);
        let (kind, body) =
            if packed.len() < rows.len() { (LZ4, packed.as_slice()) } else { (RAW, rows.as_ref()) };
        let mut stored = BytesMut::with_capacity(5 + body.len());
        stored.put_u8(kind);
        stored.put_u32_le(u32::try_from(rows.len()).expect("a block is below 4 GiB"));
        stored.extend_from_slice(body);
        stored.freeze()
    }
}

/// An unpacked block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    rows: Bytes,
    restarts: Bytes,
}

impl Block {
    /// Unpacks a stored block; `None` if it is malformed.
    pub(crate) fn decode(stored: &Bytes) -> Option<Self> {
        let mut rest = stored.as_ref();
        let kind = codec::take_u8(&mut rest)?;
        let len = usize::try_from(codec::take_u32(&mut rest)?).ok()?;
        // LZ4 compresses by a factor of at most 255, so a damaged length cannot demand much more
        // memory than the block justifies.
        let plausible = len <= UNPACKED_MAX && len / 256 <= rest.len();
        let unpacked: Bytes = match kind {
            RAW => stored.slice_ref(rest),
            LZ4 if plausible => lz4_flex::block::decompress(rest, len).ok()?.into(),
            _ => return None,
        };
        if unpacked.len() != len {
            return None;
        }
        let (before, mut count) = unpacked.split_at_checked(len.checked_sub(4)?)?;
        let restarts = usize::try_from(codec::take_u32(&mut count)?).ok()?.checked_mul(4)?;
        let (rows, restarts) = before.split_at_checked(before.len().checked_sub(restarts)?)?;
        Some(Self { rows: unpacked.slice_ref(rows), restarts: unpacked.slice_ref(restarts) })
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() + self.restarts.len()
    }

    /// A walk from the first row at or above `key`; `None` if the block is malformed.
    pub(crate) fn iter_from(&self, key: &[u8]) -> Option<BlockIter> {
        let mut iter = BlockIter {
            block: self.clone(),
            at: self.restart_before(key)?,
            key: Vec::new(),
            row: None,
        };
        iter.advance()?;
        while iter.row.is_some() && iter.key.as_slice() < key {
            iter.advance()?;
        }
        Some(iter)
    }

    /// The row of `key`. The outer `None` says that the block is malformed, the middle one that it
    /// has no such row, the inner one is a tombstone.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Option<Bytes>>> {
        let iter = self.iter_from(key)?;
        Some(iter.row.filter(|_| iter.key.as_slice() == key))
    }

    /// The offset of the last restart whose key is at or below `key`, or of the first one.
    fn restart_before(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.restarts.len() / 4);
        while low < high {
            let middle = low.midpoint(high);
            if self.restart_key(middle)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.restart(low.saturating_sub(1))
    }

    fn restart(&self, number: usize) -> Option<usize> {
        if self.restarts.is_empty() {
            return self.rows.is_empty().then_some(0);
        }
        let mut offset = self.restarts.get(4 * number..)?;
        usize::try_from(codec::take_u32(&mut offset)?).ok()
    }

    fn restart_key(&self, number: usize) -> Option<&[u8]> {
        let mut rest = self.rows.get(self.restart(number)?..)?;
        let shared = codec::take_len(&mut rest)?;
        let len = codec::take_len(&mut rest)?;
        codec::take_varint(&mut rest)?;
        if shared == 0 { codec::take(&mut rest, len) } else { None }
    }
}

/// A walk over a block. It is at a row or at the end.
#[derive(Debug)]
pub(crate) struct BlockIter {
    block: Block,
    /// The offset of the row after the current one.
    at: usize,
    key: Vec<u8>,
    /// The value or tombstone of the current row.
    row: Option<Option<Bytes>>,
}

impl BlockIter {
    /// Returns the current row and moves on. The outer `None` says that the block is malformed, the
    /// inner one that this is its end.
    pub(crate) fn next_row(&mut self) -> Option<Option<Item>> {
        let Some(value) = self.row.take() else { return Some(None) };
        let key = Bytes::copy_from_slice(&self.key);
        self.advance()?;
        Some(Some((key, value)))
    }

    fn advance(&mut self) -> Option<()> {
        self.row = None;
        let rows = &self.block.rows;
        let mut rest = rows.get(self.at..)?;
        if rest.is_empty() {
            return Some(());
        }
        let shared = codec::take_len(&mut rest)?;
        let len = codec::take_len(&mut rest)?;
        let value = codec::take_varint(&mut rest)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(codec::take(&mut rest, len)?);
        let value = match value.checked_sub(1) {
            None => None,
            Some(len) => Some(rows.slice_ref(codec::take(&mut rest, usize::try_from(len).ok()?)?)),
        };
        let after = rows.len() - rest.len();
        self.row = Some(value);
        self.at = after;
        Some(())
    }
}
