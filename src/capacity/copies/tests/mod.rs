//! Extents with copies on simulated nodes.

mod cluster;
mod histories;
mod member;
mod settling;

use bytes::Bytes;
use tokio::runtime::Builder;

use crate::capacity::CopyId;
use crate::capacity::ExtentKind;
use crate::types::Epoch;
use crate::types::ExtentId;

const ID: ExtentId = ExtentId::new(5);
const COPY: CopyId = CopyId { extent: ID, kind: ExtentKind::Data };
const LOG: CopyId = CopyId { extent: ID, kind: ExtentKind::Log };
const ONE: Epoch = Epoch::new(1);
const TWO: Epoch = Epoch::new(2);

fn run<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

/// Bytes that differ by seed and place.
fn payload(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}
