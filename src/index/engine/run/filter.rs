//! A Bloom filter over the keys of a run: most lookups of absent keys read no block.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::engine::codec;

/// With ten bits for each key about one lookup of an absent key in 120 is a false positive.
const BITS_PER_KEY: u64 = 10;
const PROBES: u64 = 7;

/// Collects the keys of a run.
#[derive(Debug)]
pub(crate) struct FilterBuilder {
    bits: Vec<u8>,
}

impl FilterBuilder {
    /// A filter for at most `keys` keys. More keys cause more false positives, but no false
    /// negatives.
    pub(crate) fn new(keys: u64) -> Self {
        let bytes = keys.saturating_mul(BITS_PER_KEY).div_ceil(8).max(8);
        Self { bits: vec![0; usize::try_from(bytes).expect("a filter fits memory")] }
    }

    /// Adds a key.
    pub(crate) fn insert(&mut self, key: &[u8]) {
        for (byte, mask) in probes(key, self.bits.len()) {
            if let Some(bits) = self.bits.get_mut(byte) {
                *bits |= mask;
            }
        }
    }

    /// The bytes to store.
    pub(crate) fn finish(self) -> Bytes {
        self.bits.into()
    }
}

/// A stored filter. Any bytes are a valid filter.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    bits: Bytes,
}

impl Filter {
    /// Wraps stored bytes.
    pub(crate) fn new(bits: Bytes) -> Self {
        Self { bits }
    }

    /// Whether the run may have the key. Never false for a key that was inserted.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        probes(key, self.bits.len())
            .all(|(byte, mask)| self.bits.get(byte).is_some_and(|bits| bits & mask != 0))
    }
}

/// The bits of a key in a filter of `len` bytes.
fn probes(key: &[u8], len: usize) -> impl Iterator<Item = (usize, u8)> {
    let hash = hash(key);
    let step = (hash >> 32) | 1;
    let bits = codec::wide(len).saturating_mul(8).max(1);
    (0..PROBES).map(move |probe| {
        let bit = hash.wrapping_add(probe.wrapping_mul(step)) % bits;
        (usize::try_from(bit / 8).unwrap_or(usize::MAX), 1u8 << (bit % 8))
    })
}

/// FNV-1a, then the finalizer of SplitMix64, so that every bit depends on every byte. It is a part
/// of the layout.
fn hash(key: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for byte in key {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}
