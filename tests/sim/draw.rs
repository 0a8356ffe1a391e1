//! Random choices of a history, and contents that differ from each other.

use blockyard::env::Rand;
use blockyard::env::SeededRand;
use bytes::Bytes;

/// The random choices of a history.
#[derive(Debug)]
pub(crate) struct Draw {
    rand: SeededRand,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rand: SeededRand::new(seed) }
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.rand.below(high - low + 1)
    }

    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.rand.below(100) < chance
    }

    /// One of several; `None` if there are none.
    pub(crate) fn one<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.rand.below(from.len() as u64)).unwrap())
    }

    /// A length, on either side of every threshold of the layers.
    pub(crate) fn length(&self) -> u64 {
        match self.rand.below(20) {
            0..=7 => self.between(1, 200),
            8..=12 => self.between(200, 5_000),
            13..=15 => self.between(5_000, 40_000),
            16..=18 => self.between(30_000, 150_000),
            _ => self.between(150_000, 1_200_000),
        }
    }
}

/// The difference between two consecutive words of a content.
pub(crate) const WORD_STEP: u64 = 0x2545_f491_4f6c_dd1d;

/// Bytes that only this tag has.
pub(crate) fn content(tag: u64, len: u64) -> Bytes {
    let len = usize::try_from(len).unwrap();
    let mut bytes = Vec::with_capacity(len + 8);
    let mut word = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while bytes.len() < len {
        bytes.extend_from_slice(&word.to_le_bytes());
        word = word.wrapping_add(WORD_STEP);
    }
    bytes.truncate(len);
    bytes.into()
}
