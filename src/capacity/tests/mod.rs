//! Tests of the node through its interface.

mod backup;
mod cancelled;
mod damage;
mod disks;
mod drain;
pub(super) mod faults;
mod holes;
mod metrics;
mod model;
mod node;
mod panics;
mod remembered;
mod removals;
mod sim;
mod stress;

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::units::size;

/// Bytes in which all pages differ.
pub(super) fn payload(seed: u64, len: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(crate::capacity::units::index(len)).collect()
}

/// A seeded generator for the random choices of a test.
#[derive(Clone, Debug)]
struct Dice(Arc<crate::env::rand::SeededRand>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Arc::new(crate::env::rand::SeededRand::new(seed)))
    }

    fn below(&self, bound: u64) -> u64 {
        crate::env::Rand::below(&*self.0, bound)
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(crate::capacity::units::index(self.below(size(from.len()))))
    }
}
