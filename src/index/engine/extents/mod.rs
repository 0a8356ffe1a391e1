//! Which log and run extents a partition has, as the coordinator records it (ADR 0022). An extent
//! is removed against these records only, never because one process does not use it.
//!
//! 1. `record.rs`: the two kinds of records and their bytes.
//! 2. `reserve.rs`: the record of one open partition: ids are recorded before an extent is created
//!    under them.
//! 3. `ids.rs`: more ids are recorded when few are left, without the committer.
//! 4. `pass.rs`: what a split or merge passes on to the new partitions, in its own transaction.
//! 5. `release.rs`: a partition uses an extent no more; the last one removes it.
//! 6. `pins.rs`: runs that this process reads right now are removed later.
//! 7. `upgrade.rs`: stores written before there were records.
//!
//! Invariants: an extent exists only while some partition's record names it · a partition uses only
//! what its record names · an extent that several partitions may use has a list of them, and each
//! partition that uses it is on the list · an extent without a list is used by one partition at
//! most · nothing comes back into use once it is not used, and an id is used once.

pub(crate) mod ids;
mod pass;
mod pins;
mod record;
mod release;
mod reserve;
mod upgrade;

pub(crate) use pass::{Heir, Passed, pass_on};
pub(crate) use pins::{Pin, PinnedExtent, Pins};
pub(crate) use record::RecordAt;
pub(crate) use record::Sharers;
pub use record::{ExtentRecord, Loaded};
pub(crate) use release::release;
pub(crate) use reserve::{Change, Extents, Owner};
pub(crate) use upgrade::upgrade;
