//! A run opened for reading.

#![deny(clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::iter::Sum;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::{Bytes, BytesMut};

use crate::capacity::Capacity;
use crate::index::api::Error;
use crate::index::engine::chores::{Chore, Chores};
use crate::index::engine::codec;
use crate::index::engine::extents::{Extents, Pin};
use crate::index::engine::failure;
use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::run::block::Block;
use crate::index::engine::run::cache::BlockCache;
use crate::index::engine::run::filter::Filter;
use crate::index::engine::run::footer::Footer;
use crate::index::engine::table::{Interval, Item, ScanStart};
use crate::index::rows::Family;
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;

/// A run of fewer blocks is rewritten without estimating its foreign rows.
const BLOCKS_MIN: u64 = 8;

/// Rows, and their encoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSize {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Sum for RunSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| Self {
            rows: sum.rows + size.rows,
            bytes: sum.bytes + size.bytes,
        })
    }
}

/// A run of a manifest, and the pin that keeps this process from removing it.
#[derive(Debug)]
pub(crate) struct PinnedRun {
    pub(crate) entry: RunEntry,
    pub(crate) pin: Pin,
}

/// A run, as one partition uses it.
#[derive(Debug)]
pub(crate) struct Run {
    body: Arc<Body>,
    /// The extents of the partition that releases the run on drop; `None` while the partition uses
    /// it.
    retired: Mutex<Option<Arc<Extents>>>,
    chores: Arc<Chores>,
}

/// The part of a run that all partitions share: its index and filter in memory. Blocks are read on
/// demand.
#[derive(Debug)]
struct Body {
    entry: RunEntry,
    family: Family,
    footer: Footer,
    /// The first key of each data block, and the location of the block.
    index: Vec<(Bytes, Location)>,
    filter: Filter,
    capacity: Arc<dyn Capacity>,
    cache: Arc<BlockCache>,
    _pin: Pin,
}

impl Run {
    /// Reads footer, index and filter.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn open(
        run: PinnedRun,
        capacity: Arc<dyn Capacity>,
        cache: Arc<BlockCache>,
        chores: Arc<Chores>,
    ) -> Result<Self, Error> {
        let PinnedRun { entry, pin: _pin } = run;
        let extent = entry.footer.extent;
        let damaged = |what| Error::damaged_rows(format!("run {extent}: its {what} is malformed"));
        let footer = read(capacity.as_ref(), &entry.footer).await?;
        let footer = Footer::decode(&footer)
            .filter(|footer| footer.family == entry.family && footer.rows == entry.rows)
            .ok_or_else(|| damaged("footer"))?;
        let family = Family::from_number(footer.family).ok_or_else(|| damaged("family"))?;
        let index = read(capacity.as_ref(), &footer.index).await?;
        let index = decode_index(extent, &index).ok_or_else(|| damaged("index"))?;
        let filter = Filter::new(read(capacity.as_ref(), &footer.filter).await?);
        let body = Arc::new(Body { entry, family, footer, index, filter, capacity, cache, _pin });
        Ok(Self { body, retired: Mutex::default(), chores })
    }

    /// The same run for the use of another partition, which releases it independently.
    pub(crate) fn share(&self) -> Self {
        let (body, chores) = (Arc::clone(&self.body), Arc::clone(&self.chores));
        Self { body, retired: Mutex::default(), chores }
    }

    /// Whether all its rows are among `keys`.
    pub(crate) fn lies_in(&self, keys: &PartitionKeys) -> bool {
        let (range, footer) = (keys.range(), &self.body.footer);
        let of_it = keys.stripe().is_none_or(|stripe| footer.stripe == Some(stripe));
        of_it && range.contains(&footer.first) && range.contains(&footer.last)
    }

    /// The number of its rows, and their bytes.
    pub(crate) fn size(&self) -> RunSize {
        let RunEntry { rows, bytes, .. } = self.body.entry;
        RunSize { rows, bytes }
    }

    /// An estimate of how many of its rows, and of their bytes, are among `keys`.
    pub(crate) fn size_in(&self, keys: &PartitionKeys) -> RunSize {
        let RunSize { rows, bytes } = self.size();
        if self.lies_in(keys) {
            return RunSize { rows, bytes };
        }
        let range = keys.range();
        let shared = keys.stripe().filter(|stripe| self.body.footer.stripe != Some(*stripe));
        let stripes = shared.map_or(1, |stripe| u128::from(stripe.of()));
        let index = &self.body.index;
        let below = |key: &RoutingKey| index.partition_point(|(first, _)| first < key.as_bytes());
        let end = range.high().map_or(index.len(), below);
        let inside = u64::try_from(end.saturating_sub(below(range.low()))).unwrap_or(u64::MAX);
        let all = u64::try_from(index.len()).unwrap_or(u64::MAX).max(1);
        let part = |whole: u64| {
            let part = u128::from(whole) * u128::from(inside) / (u128::from(all) * stripes);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        RunSize { rows: part(rows), bytes: part(bytes) }
    }

    /// An estimate of the percentage of its blocks whose rows are not among `keys`. It is 100 for a
    /// run of few blocks, and for one that may hold rows of other stripes.
    pub(crate) fn percent_outside(&self, keys: &PartitionKeys) -> u64 {
        let all = codec::wide(self.body.index.len());
        let is_shared = keys.stripe().is_some_and(|one| self.body.footer.stripe != Some(one));
        if all < BLOCKS_MIN || is_shared {
            return 100;
        }
        let range = keys.range();
        let place = |key: &[u8]| self.body.index.partition_point(|(first, _)| first.as_ref() < key);
        let low = place(range.low().as_bytes());
        let high = range.high().map_or(self.body.index.len(), |high| place(high.as_bytes()));
        let inside = codec::wide(high.saturating_sub(low));
        all.saturating_sub(inside) * 100 / all
    }

    /// An estimate of how many of its rows lie between the first and the last row of one of
    /// `older`.
    pub(crate) fn rows_over(&self, older: &[Arc<Self>]) -> u64 {
        let mut ranges: Vec<Range<usize>> =
            older.iter().map(|run| self.blocks_between(&run.body.footer)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let (mut blocks, mut counted_to) = (0, 0);
        for range in ranges {
            blocks += range.end.saturating_sub(range.start.max(counted_to));
            counted_to = counted_to.max(range.end);
        }
        let rows = u128::from(self.body.footer.rows) * blocks as u128;
        let all = self.body.index.len().max(1) as u128;
        u64::try_from(rows / all).unwrap_or(u64::MAX)
    }

    /// Its data blocks that may have rows between the first and the last row of another run.
    fn blocks_between(&self, other: &Footer) -> Range<usize> {
        let own = &self.body.footer;
        if own.last < other.first || own.first > other.last {
            return 0..0;
        }
        let up_to = |key: &Bytes| self.body.index.partition_point(|(first, _)| first <= key);
        up_to(&other.first).saturating_sub(1)..up_to(&other.last)
    }

    /// Its entry in the manifest.
    pub(crate) fn entry(&self) -> &RunEntry {
        &self.body.entry
    }

    /// The first key of each data block, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Bytes> {
        self.body.index.iter().map(|(first, _)| first)
    }

    /// The average number of rows of a data block, at least 1.
    pub(crate) fn rows_of_a_block(&self) -> u64 {
        let count = u64::try_from(self.body.index.len()).unwrap_or(u64::MAX);
        (self.body.footer.rows / count.max(1)).max(1)
    }

    /// The highest key.
    pub(crate) fn last(&self) -> &Bytes {
        &self.body.footer.last
    }

    /// The extent of the run.
    pub(crate) fn extent(&self) -> ExtentId {
        self.body.entry.footer.extent
    }

    /// The family of its rows.
    pub(crate) fn family(&self) -> Family {
        self.body.family
    }

    /// Tombstones in it.
    pub(crate) fn tombstones(&self) -> u64 {
        self.body.footer.tombstones
    }

    /// Keeps the extent on drop: a manifest that names the run is durable, or may be.
    pub(crate) fn keep(&self) {
        *self.retired.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Releases the extent from the record `by` on drop, when no view holds the run any more. Call
    /// it only if no manifest names the run.
    pub(crate) fn retire(&self, by: &Arc<Extents>) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        *retired = Some(Arc::clone(by));
    }

    /// The row or tombstone of a key.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Option<Bytes>>, Error> {
        let outside = key < self.body.footer.first.as_ref() || key > self.body.footer.last.as_ref();
        if outside || !self.body.filter.may_contain(key) {
            return Ok(None);
        }
        let Some(number) = self.block_of(key) else { return Ok(None) };
        let Some(block) = self.block(number, true).await? else { return Ok(None) };
        block.get(key).ok_or_else(|| self.damaged(number))
    }

    /// Adds rows of the interval, tombstones included, to `out`: at most `limit`, all of one block.
    /// Returns where to continue; `None` at the end.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn collect(
        &self,
        interval: Interval<'_>,
        limit: usize,
        through_cache: bool,
        out: &mut VecDeque<Item>,
    ) -> Result<Option<ScanStart>, Error> {
        let Interval { from, to } = interval;
        let (ScanStart::At(start) | ScanStart::After(start)) = from;
        let mut number = self.block_of(start).unwrap_or(0);
        while let Some(block) = self.block(number, through_cache).await? {
            let mut rows = block.iter_from(start).ok_or_else(|| self.damaged(number))?;
            let before = out.len();
            while let Some((key, value)) = rows.next_row().ok_or_else(|| self.damaged(number))? {
                if to.is_some_and(|to| key.as_ref() >= to) {
                    return Ok(None);
                }
                if matches!(from, ScanStart::After(after) if *after == key) {
                    continue;
                }
                out.push_back((key, value));
                if out.len() - before == limit {
                    break;
                }
            }
            if out.len() > before {
                return Ok(out.back().map(|(key, _)| ScanStart::After(key.clone())));
            }
            number += 1;
        }
        Ok(None)
    }

    /// The number of the block that has `key`, if any block has it.
    fn block_of(&self, key: &[u8]) -> Option<usize> {
        self.body.index.partition_point(|(first, _)| first.as_ref() <= key).checked_sub(1)
    }

    /// Reads a data block by number; `None` after the last.
    async fn block(&self, number: usize, through_cache: bool) -> Result<Option<Block>, Error> {
        let Some((_, location)) = self.body.index.get(number) else { return Ok(None) };
        let load = async {
            let stored = read(self.body.capacity.as_ref(), location).await?;
            Block::decode(&stored).ok_or_else(|| self.damaged(number))
        };
        if !through_cache {
            return load.await.map(Some);
        }
        self.body.cache.get((location.extent, location.offset), load).await.map(Some)
    }

    fn damaged(&self, block: usize) -> Error {
        Error::damaged_rows(format!("run {}: block {block} is malformed", self.extent()))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let retired = self.retired.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = retired.take() {
            self.chores.add(Chore::Release(by, self.body.entry.footer.extent));
        }
    }
}

fn decode_index(extent: ExtentId, stored: &Bytes) -> Option<Vec<(Bytes, Location)>> {
    let mut rows = Block::decode(stored)?.iter_from(&[])?;
    let mut index = Vec::new();
    while let Some((key, value)) = rows.next_row()? {
        let value = value?;
        let mut rest = value.as_ref();
        let offset = ExtentOffset::new(codec::take_varint(&mut rest)?);
        let len = ByteLen::new(codec::take_varint(&mut rest)?);
        let crc = Crc32c::new(codec::take_u32(&mut rest)?);
        if !rest.is_empty() {
            return None;
        }
        index.push((key, Location { extent, offset, len, crc }));
    }
    Some(index)
}

async fn read(capacity: &dyn Capacity, location: &Location) -> Result<Bytes, Error> {
    let pieces = capacity
        .read(location, 0..location.len.get())
        .await
        .map_err(|error| failure::read(&error))?;
    let mut pieces = pieces.into_iter();
    let first = pieces.next().unwrap_or_default();
    if pieces.len() == 0 {
        return Ok(first);
    }
    let mut joined = BytesMut::from(first.as_ref());
    for piece in pieces {
        joined.extend_from_slice(&piece);
    }
    Ok(joined.freeze())
}
