//! Extents with copies on simulated nodes.

pub(in crate::capacity) mod cluster;
mod histories;
mod member;
mod settling;

use bytes::Bytes;

use crate::capacity::CopyId;
use crate::capacity::ExtentKind;
use crate::capacity::tests::faults::run;
use crate::capacity::units::size;
use crate::types::Epoch;
use crate::types::ExtentId;

const ID: ExtentId = ExtentId::new(5);
const COPY: CopyId = CopyId { extent: ID, kind: ExtentKind::Data };
const LOG: CopyId = CopyId { extent: ID, kind: ExtentKind::Log };
const ONE: Epoch = Epoch::new(1);
const TWO: Epoch = Epoch::new(2);

/// Bytes that differ by seed and place.
fn payload(seed: u64, len: usize) -> Bytes {
    crate::capacity::tests::payload(seed, size(len))
}
