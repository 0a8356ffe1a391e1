//! The randomness seam.

use std::fmt::Debug;

/// Random numbers; not for secrets (`blockyard keygen` asks the operating system).
pub trait Rand: Send + Sync + Debug {
    /// 64 uniform bits.
    fn next_u64(&self) -> u64;

    /// A number in `0..bound`; 0 when `bound` is 0.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}
