//! Extents with copies on several nodes, on the side of those who write and settle them.
//!
//! - `writer.rs`: appends to all members at once, and seals what ended cleanly;
//! - `pull.rs`: gives a copy what it lacks from another one;
//! - `settle.rs`: agrees on the end of an extent that its writer gave up; `group_ends.rs`: such
//!   ends in the records of groups.
//!
//! Invariants (ADR 0050): an append is answered when all members have synced it (I1) · an extent
//! has one end, and all sealed copies end there (I3) · the end is never before an answered byte
//! (I4): a settler levels the copies before it records the end, and the first recorded end counts.
//!
//! Not here: which members an extent has (`groups/`), messages to other processes, and
//! when to give an extent up.

mod group_ends;
mod pull;
mod settle;
#[cfg(test)]
pub(in crate::capacity) mod tests;
mod writer;

pub use group_ends::GroupEnds;
#[cfg(test)]
use settle::settle;
pub use settle::{EndRecord, Patience, Recorded, Settlement, Settling, Unsettled};
pub use writer::{CopyWriter, GivenUp};

use std::sync::Arc;

use super::Member;

/// The members of an extent. At least one.
pub type Members = Vec<Arc<dyn Member>>;
