//! The bytes of every blob: a function of its number and size, so that every answer can be
//! verified.

use bytes::Bytes;
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::workload::Order;
use super::workload::Set;

/// The number of places in the pool at which bodies begin, 64 bytes apart.
const STARTS: usize = 1024;

/// One random buffer that every body is a slice of. Random bytes do not compress.
#[derive(Debug)]
pub struct Pool(Bytes);

impl Pool {
    /// The same bytes in every run, for bodies of up to `largest` bytes.
    #[must_use]
    pub fn new(largest: usize) -> Self {
        let mut bytes = vec![0; largest + STARTS * 64];
        StdRng::seed_from_u64(1).fill(&mut bytes[..]);
        Self(Bytes::from(bytes))
    }

    /// The body of blob `number`, without copying it.
    #[must_use]
    pub fn body(&self, number: u64, size: usize) -> Bytes {
        let start = pick(number, STARTS as u64) as usize * 64;
        self.0.slice(start..start + size)
    }
}

/// A number below `below` that looks random but is the same for the same `seed`.
#[must_use]
pub fn pick(seed: u64, below: u64) -> u64 {
    mixed(seed) % below.max(1)
}

/// A bijection in which every bit of the seed affects every bit of the result.
fn mixed(seed: u64) -> u64 {
    // SplitMix64's finisher.
    let mut x = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Name of blob `number` of a set.
#[must_use]
pub fn name(set: Set, number: u64) -> String {
    match set.order {
        Order::Counted => format!("{}/{number:08}", set.name),
        Order::Between => format!("{}/{number:08}-gone", set.name),
        Order::Growing => format!("{}/{number:016}", set.name),
        Order::Scattered => format!("{}/{:016x}", set.name, mixed(number)),
    }
}
