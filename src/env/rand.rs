//! The interface of randomness.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::PoisonError;

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

/// Random numbers, not for secrets (`blockyard keygen` uses the operating system's).
pub trait Rand: Send + Sync + Debug {
    /// 64 uniform bits.
    fn next_u64(&self) -> u64;

    /// A number in `0..bound`; 0 if `bound` is 0.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}

/// The machine's generator: one for each thread, seeded by the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRand;

impl Rand for OsRand {
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}

/// The same numbers for the same seed, on every machine.
#[derive(Debug)]
pub struct SeededRand {
    generator: Mutex<Xoshiro256PlusPlus>,
}

impl SeededRand {
    /// A generator in the state that the seed determines.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)) }
    }
}

impl Rand for SeededRand {
    fn next_u64(&self) -> u64 {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rand: &dyn Rand) -> Vec<u64> {
        (0..8).map(|_| rand.next_u64()).collect()
    }

    #[test]
    fn seeded_rand_repeats_for_the_same_seed_only() {
        assert_eq!(numbers(&SeededRand::new(7)), numbers(&SeededRand::new(7)));
        assert_ne!(numbers(&SeededRand::new(7)), numbers(&SeededRand::new(8)));
    }

    #[test]
    fn os_rand_does_not_repeat() {
        assert_ne!(numbers(&OsRand), numbers(&OsRand));
    }

    #[test]
    fn below_stays_below() {
        let rand = SeededRand::new(1);
        assert!((0..100).all(|_| rand.below(3) < 3));
        assert_eq!(rand.below(0), 0);
    }
}
