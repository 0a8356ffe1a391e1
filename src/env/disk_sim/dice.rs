//! Random decisions of a simulated disk, and a digest of all its operations.

use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

/// A seeded generator, and the trace of operations.
#[derive(Debug)]
pub(super) struct Dice {
    generator: Xoshiro256PlusPlus,
    trace: DefaultHasher,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed), trace: DefaultHasher::new() }
    }

    /// A number in `0..bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.generator.next_u64() % bound.max(1)
    }

    /// True with a probability of `per_million` in a million.
    pub(super) fn happens(&mut self, per_million: u32) -> bool {
        // No number is drawn for probability 0, so that switching a fault on does not change the
        // decisions before that.
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    pub(super) fn record(&mut self, event: &impl Hash) {
        event.hash(&mut self.trace);
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.finish()
    }
}
