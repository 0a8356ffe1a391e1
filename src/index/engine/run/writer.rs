//! Writes one run: takes rows in key order and makes a sealed extent.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity;
use crate::capacity::{AppendRequest, Capacity, Durability, Payload};
use crate::index::engine::codec;
use crate::index::engine::log::manifest::RunEntry;
use crate::index::engine::run::block::BlockBuilder;
use crate::index::engine::run::filter::FilterBuilder;
use crate::index::engine::run::footer::Footer;
use crate::index::rows::Family;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::Stripe;

/// A block is closed once it has this many unpacked bytes.
const BLOCK_BYTES: usize = 16 * 1024;
/// Closed blocks are appended together once they have this many bytes. The task yields after each
/// append.
const APPEND_BYTES: usize = 256 << 10;
/// The run is synced each time this many bytes were appended, not only at its end: a sync of
/// hundreds of megabytes delays the syncs of the log.
const FLUSH_BYTES: u64 = 8 << 20;

/// The extent of a new run, and the rows that it will hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTarget {
    pub(crate) extent: ExtentId,
    pub(crate) epoch: Epoch,
    pub(crate) family: Family,
    /// The stripe of all rows, if there is one.
    pub(crate) stripe: Option<Stripe>,
    /// The most rows there can be.
    pub(crate) rows_max: u64,
}

/// Streams rows into an extent. In memory it holds only the blocks of one append, the index and the
/// filter.
#[derive(Debug)]
pub(crate) struct RunWriter {
    capacity: Arc<dyn Capacity>,
    extent: ExtentId,
    epoch: Epoch,
    family: Family,
    stripe: Option<Stripe>,
    /// The end of the extent: the offset of the next append.
    end: u64,
    /// The extent is durable up to this offset.
    flushed: u64,
    block: BlockBuilder,
    block_first: Bytes,
    waiting: Vec<(Bytes, Payload)>,
    waiting_bytes: usize,
    index: BlockBuilder,
    filter: FilterBuilder,
    first: Option<Bytes>,
    last: Bytes,
    rows: u64,
    tombstones: u64,
}

impl RunWriter {
    /// Starts a run in an extent just created.
    pub(crate) fn new(capacity: Arc<dyn Capacity>, target: RunTarget) -> Self {
        let RunTarget { extent, epoch, family, stripe, rows_max } = target;
        Self {
            capacity,
            extent,
            epoch,
            family,
            stripe,
            end: 0,
            flushed: 0,
            block: BlockBuilder::default(),
            block_first: Bytes::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            index: BlockBuilder::default(),
            filter: FilterBuilder::new(rows_max),
            first: None,
            last: Bytes::new(),
            rows: 0,
            tombstones: 0,
        }
    }

    /// Adds a row; keys ascend.
    ///
    /// # Errors
    /// The error of a write. The caller must remove the extent then.
    pub(crate) async fn push(
        &mut self,
        key: Bytes,
        value: Option<Bytes>,
    ) -> Result<(), capacity::Error> {
        if self.block.is_empty() {
            self.block_first = key.clone();
        }
        self.block.push(&key, value.as_deref());
        self.filter.insert(&key);
        self.rows += 1;
        self.tombstones += u64::from(value.is_none());
        self.first.get_or_insert_with(|| key.clone());
        self.last = key;
        if self.block.len() >= BLOCK_BYTES {
            self.close_block();
        }
        if self.waiting_bytes >= APPEND_BYTES { self.append_waiting().await } else { Ok(()) }
    }

    /// Writes the remaining rows, makes the run durable and seals it. `None` if there were no rows:
    /// the caller must remove the extent then.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) async fn finish(mut self) -> Result<Option<RunEntry>, capacity::Error> {
        let Some(first) = self.first.take() else { return Ok(None) };
        if !self.block.is_empty() {
            self.close_block();
        }
        self.append_waiting().await?;
        let index = self.index.finish();
        let filter = std::mem::replace(&mut self.filter, FilterBuilder::new(0)).finish();
        let parts = self.append(vec![vec![index], vec![filter]]).await?;
        let [index, filter] = parts.as_slice() else { return Err(self.misplaced()) };
        let footer = Footer {
            family: self.family as u8,
            rows: self.rows,
            tombstones: self.tombstones,
            first,
            last: self.last.clone(),
            index: *index,
            filter: *filter,
            stripe: self.stripe,
        };
        let footer = self.append(vec![vec![footer.encode()]]).await?;
        let [footer] = footer.as_slice() else { return Err(self.misplaced()) };
        self.capacity.flush(self.extent, self.epoch).await?;
        self.capacity.seal(self.extent, self.epoch).await?;
        let family = self.family as u8;
        Ok(Some(RunEntry { family, footer: *footer, rows: self.rows, bytes: self.end }))
    }

    fn close_block(&mut self) {
        let block = self.block.finish();
        self.waiting_bytes += block.len();
        self.waiting.push((std::mem::take(&mut self.block_first), vec![block]));
    }

    async fn append_waiting(&mut self) -> Result<(), capacity::Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting_bytes = 0;
        let (firsts, payloads): (Vec<_>, Vec<_>) = self.waiting.drain(..).unzip();
        let locations = self.append(payloads).await?;
        if locations.len() != firsts.len() {
            return Err(self.misplaced());
        }
        for (first, location) in firsts.iter().zip(locations) {
            let mut value = Vec::with_capacity(16);
            codec::put_varint(&mut value, location.offset.get());
            codec::put_varint(&mut value, location.len.get());
            value.extend_from_slice(&location.crc.get().to_le_bytes());
            self.index.push(first, Some(&value));
        }
        if self.end - self.flushed >= FLUSH_BYTES {
            self.capacity.flush(self.extent, self.epoch).await?;
            self.flushed = self.end;
        }
        // A flush or compaction is long and shares its thread with requests.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn append(&mut self, payloads: Vec<Payload>) -> Result<Vec<Location>, capacity::Error> {
        let request = AppendRequest {
            extent: self.extent,
            epoch: self.epoch,
            offset: ExtentOffset::new(self.end),
            payloads,
            durability: Durability::Deferred,
        };
        let appended = self.capacity.append(request).await?;
        self.end = appended.end.get();
        Ok(appended.locations)
    }

    fn misplaced(&self) -> capacity::Error {
        capacity::Error::WrongOffset { extent: self.extent, expected: ExtentOffset::new(self.end) }
    }
}
