//! The block cache of a host. All its partitions share it. It is bounded by bytes. Only this file
//! names `quick_cache`.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::index::api::Error;
use crate::index::engine::codec;
use crate::index::engine::run::block::Block;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Bytes of memory that an entry takes beside its block.
const ENTRY_OVERHEAD: usize = 128;

/// A hash without a random key: evictions, and so repeated reads, are the same in every run of a
/// simulation. Keys are numbers that this program issues, so no client can choose keys that
/// collide.
type FixedHash = BuildHasherDefault<DefaultHasher>;

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<(ExtentId, ExtentOffset), Block> for ByBytes {
    fn weight(&self, _key: &(ExtentId, ExtentOffset), block: &Block) -> u64 {
        codec::wide(block.bytes() + ENTRY_OVERHEAD)
    }
}

/// The number of lookups that found their block, and of those that did not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookups {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// Unpacked blocks by extent and offset.
pub(crate) struct BlockCache {
    blocks: Cache<(ExtentId, ExtentOffset), Block, ByBytes, FixedHash>,
    lookups: AtomicU64,
    misses: AtomicU64,
}

impl BlockCache {
    /// An empty cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let expected = bytes / (16 * 1024) + 1;
        Self {
            blocks: Cache::with(
                expected,
                codec::wide(bytes),
                ByBytes,
                FixedHash::default(),
                DefaultLifecycle::default(),
            ),
            lookups: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns a block, and loads it if necessary. Concurrent lookups of a block load it once; if
    /// the task that loads it is cancelled or fails, the next one loads it. Lookups of a hot key
    /// share this (ADR 0020). No lookup gets stale rows: a block never changes, and each lookup
    /// determines its blocks from its own snapshot.
    pub(crate) async fn get(
        &self,
        key: (ExtentId, ExtentOffset),
        load: impl Future<Output = Result<Block, Error>>,
    ) -> Result<Block, Error> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let counted = async {
            self.misses.fetch_add(1, Ordering::Relaxed);
            load.await
        };
        self.blocks.get_or_insert_async(&key, counted).await
    }

    /// The lookups so far.
    pub(crate) fn lookups(&self) -> Lookups {
        let misses = self.misses.load(Ordering::Relaxed);
        Lookups { hits: self.lookups.load(Ordering::Relaxed).saturating_sub(misses), misses }
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("bytes", &self.blocks.weight()).finish_non_exhaustive()
    }
}
